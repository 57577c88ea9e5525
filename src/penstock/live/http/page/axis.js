// The time axis of lanes and heat maps: times of day, or seconds from a start.

import { palette } from "./palette.js";
import { Surface } from "./surface.js";

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
const LABEL = 74;

/** Return round times in a range, at least the width of a label apart. */
export function ticks(from, to, width, daily = true) {
  const wanted = ((to - from) * LABEL) / Math.max(width, 1);
  const step = STEPS.find((each) => each >= wanted) ?? 86400 * Math.ceil(wanted / 86400);
  const shift = daily ? new Date(1000 * to).getTimezoneOffset() * 60 : 0;
  const times = [];
  for (let time = Math.ceil((from - shift) / step) * step + shift; time <= to; time += step) times.push(time);
  return { times, step };
}

const seconds = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const minutes = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

function label(time, step, daily) {
  if (daily) return (step < 60 ? seconds : minutes).format(1000 * time);
  if (step < 60) return `${time} s`;
  return step < 3600 ? `${time / 60} min` : `${time / 3600} h`;
}

export class Axis {
  /** `range()` returns {from, to}; `daily`: times of day, not seconds from a start. */
  constructor(range, daily = true) {
    this.range = range;
    this.daily = daily;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "axis";
    this.canvas.setAttribute("aria-hidden", "true");
    this.surface = new Surface(this.canvas, (pen, width, height) => this.paint(pen, width, height));
  }

  request() {
    this.surface.request();
  }

  paint(pen, width, height) {
    const { from, to } = this.range();
    const colours = palette();
    const { times, step } = ticks(from, to, width, this.daily);
    pen.textBaseline = "middle";
    for (const time of times) {
      const x = Math.round(((time - from) / (to - from)) * width);
      pen.fillStyle = colours.line;
      pen.fillRect(x, height - 4, 1, 4);
      pen.fillStyle = colours.muted;
      const text = label(time, step, this.daily);
      const wide = pen.measureText(text).width;
      pen.fillText(text, Math.min(Math.max(x - wide / 2, 0), width - wide), height / 2 - 2);
    }
  }
}

/** Draw the grid lines of the axis in a picture. */
export function grid(pen, { from, to }, width, height, daily = true) {
  pen.fillStyle = palette().line;
  for (const time of ticks(from, to, width, daily).times) {
    pen.fillRect(Math.round(((time - from) / (to - from)) * width), 0, 1, height);
  }
}
