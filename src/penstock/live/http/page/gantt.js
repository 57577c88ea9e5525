// Lanes: a bar is a transfer, its height the granted share; waits are hatched; the thin line is computing.

import { Axis, grid } from "./axis.js";
import { h } from "./dom.js";
import { palette } from "./palette.js";
import { Rows } from "./rows.js";
import * as format from "./format.js";

const LANE = [20, 32];
const WORDS = { io: "transfers", wait: "waits", "would-wait": "would wait" };

/** Return the index of the first interval that may extend beyond a time. */
function firstAfter(stretches, time) {
  let [low, high] = [0, stretches.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (stretches[middle][1] < time) low = middle + 1;
    else high = middle;
  }
  let back = 0; // consecutive intervals may touch; more than a few never overlap
  while (low > 0 && back < 4) {
    low -= 1;
    back += 1;
  }
  return low;
}

/** Draw one lane. */
export function paintLane(pen, lane, y, height, width, { from, to, now }) {
  const colours = palette();
  const scale = width / (to - from);
  const x = (time) => (Math.min(Math.max(time, from), to) - from) * scale;
  const [top, bottom] = [y + 3, y + height - 3];
  const room = bottom - top;
  const end = lane.ended ?? Math.min(now, to);
  if (end > from && lane.began < to) {
    const known = Math.min(Math.max(lane.began, lane.known ?? lane.began), end);
    pen.fillStyle = colours.compute;
    if (known < end) pen.fillRect(x(known), bottom - 1, Math.max(x(end) - x(known), 1), 1);
    if (known > lane.began && known > from) {
      pen.fillStyle = colours.deadHatch; // unknown
      pen.fillRect(x(lane.began), top, x(known) - x(lane.began), room);
    }
  }
  const drawn = { io: [-1, 0], wait: [-1, 0], "would-wait": [-1, 0] };
  const list = lane.stretches;
  for (let k = firstAfter(list, from); k < list.length; k += 1) {
    const [kind, start, ends, share] = list[k];
    if (start > to) break;
    const stop = ends ?? end;
    if (stop < from) continue;
    const left = x(start);
    const right = Math.max(x(stop), left + 1);
    // Of many within a pixel only the visible ones are drawn.
    const [reached, tallest] = drawn[kind];
    const part = kind === "io" ? Math.min(share ?? 1, 1) : 1;
    if (right <= reached + 0.5 && part <= tallest) continue;
    drawn[kind] = [right, right > reached + 0.5 ? part : Math.max(part, tallest)];
    if (kind === "io") {
      pen.fillStyle = colours.ioTrack;
      pen.fillRect(left, top, right - left, room);
      const high = Math.max(2, part * room);
      pen.fillStyle = colours.io;
      pen.fillRect(left, bottom - high, right - left, high);
    } else if (kind === "wait") {
      pen.fillStyle = right - left < 3 ? colours.wait : colours.waitHatch;
      pen.fillRect(left, top, right - left, room);
    } else {
      pen.fillStyle = right - left < 3 ? colours.would : colours.wouldHatch;
      pen.fillRect(left, top + room / 2, right - left, room / 2);
    }
  }
  if (lane.ended && lane.ended >= from && lane.ended <= to) {
    const failed = lane.state === "failed" || lane.state === "lost";
    pen.fillStyle = failed ? colours.bad : colours.muted;
    pen.fillRect(x(lane.ended) - 1, top, failed ? 2 : 1, room);
    if (failed) pen.fillText("\u00d7", x(lane.ended) + 2, y + height / 2 + 4);
  }
}

/** Describe an interval in words. */
export function inWords(id, stretch, now, clock = format.at) {
  const [kind, start, end, share] = stretch;
  const granted = kind === "io" ? ` at a share of ${format.share(share)}` : "";
  const until = end === null ? `since ${clock(start)}` : `${clock(start)} to ${clock(end)}`;
  return `${id} ${WORDS[kind]}${granted}, ${until}, ${format.span((end ?? now) - start)}`;
}

export class Gantt {
  /** lane(id): {began, ended, state, stretches, known: since when}; look(id): its label; readout(text): describes what is pointed at. */
  constructor({ label, lane, look, open, readout, daily = true, heights = LANE }) {
    Object.assign(this, { lane, readout, daily });
    this.range = { from: 0, to: 1, now: 1 };
    this.at = null; // the interval that the arrow keys selected: [id, start]
    this.axis = new Axis(() => this.range, daily);
    this.clock = daily ? format.at : (time) => format.span(time);
    this.rows = new Rows({
      label, heights, look, open,
      paint: (pen, rows, width, active) => this.paint(pen, rows, width, active),
      along: (id, step) => this.along(id, step),
      point: (id, x, width) => this.point(id, x, width),
    });
    this.element = h("div", { class: "gantt" }, h("div", { class: "gantt-axis" }, this.axis.canvas), this.rows.element);
  }

  show(ids, range) {
    this.range = range;
    this.rows.show(ids);
    this.axis.request();
  }

  paint(pen, rows, width, active) {
    const colours = palette();
    const { height } = this.rows;
    grid(pen, this.range, width, this.rows.element.clientHeight, this.daily);
    for (const { id, y } of rows) {
      if (id === active) {
        pen.fillStyle = colours.raised;
        pen.fillRect(0, y, width, height);
      }
      const lane = this.lane(id);
      paintLane(pen, lane, y, height, width, this.range);
      if (id === active && this.at?.[0] === id) this.mark(pen, lane, y, width);
    }
  }

  mark(pen, lane, y, width) {
    const stretch = lane.stretches.find(([, start]) => start === this.at[1]);
    if (stretch === undefined) return;
    const { from, to, now } = this.range;
    const x = (time) => ((time - from) / (to - from)) * width;
    pen.strokeStyle = palette().focus;
    pen.lineWidth = 2;
    const left = Math.max(x(stretch[1]), 0);
    pen.strokeRect(left, y + 1, Math.max(x(stretch[2] ?? now) - left, 3), this.rows.height - 2);
  }

  along(id, step) {
    if (id === null) return;
    const { stretches } = this.lane(id);
    if (step === 0 || stretches.length === 0) {
      this.at = null;
      this.readout(this.summary(id, stretches), true);
      return;
    }
    const now = this.at?.[0] === id ? stretches.findIndex((stretch) => stretch[1] === this.at[1]) : stretches.length;
    const next = stretches[Math.max(0, Math.min(stretches.length - 1, now + step))];
    this.at = [id, next[1]];
    this.readout(inWords(id, next, this.range.now, this.clock), true);
    this.rows.surface.request();
  }

  summary(id, stretches) {
    const phases = stretches.filter(([kind]) => kind === "io").length;
    return `${id}: ${format.some(phases, "transfer")} shown; press Enter to open the job, left and right to move along it`;
  }

  point(id, x, width) {
    if (id === null) return;
    const { from, to, now } = this.range;
    const lane = this.lane(id);
    const time = from + (x / width) * (to - from);
    const slack = (2 * (to - from)) / width;
    const stretch = x < 0 ? undefined : lane.stretches.findLast(([, start, end]) => start - slack <= time && time <= (end ?? now) + slack);
    if (stretch) this.readout(inWords(id, stretch, now, this.clock), false);
    else if (x >= 0) {
      const ended = lane.ended && time > lane.ended;
      const there = time >= lane.began && time <= now;
      const does = !there ? "did not run" : time < (lane.known ?? lane.began) ? "is unknown" : "computes";
      this.readout(ended ? `${id}: ended` : `${id} ${does} at ${this.clock(time)}`, false);
    }
  }
}
