// Small charts of a few hundred points, in SVG: scatter plots, lines, bars and steps.

import { s } from "./dom.js";
import * as format from "./format.js";

const [WIDE, HIGH] = [340, 220];
const EDGE = { left: 56, right: 12, top: 20, bottom: 36 };

/** Return round values from 0, or `from`, to at least a value. */
export function roundTicks(to, from = 0) {
  const range = Math.max(to - from, 1e-12);
  const raw = range / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= raw * 0.999);
  const ticks = [];
  for (let k = Math.floor(from / step + 1e-9); k * step < to + step * 0.999; k += 1) ticks.push(k * step);
  return ticks;
}

function frame(label, wide = WIDE, high = HIGH) {
  return s("svg", { viewBox: `0 0 ${wide} ${high}`, class: "chart", role: "img", "aria-label": label });
}

function axes(svg, { x, y, xTicks, yTicks, xText, yText, xName, yName, wide = WIDE, high = HIGH }) {
  for (const tick of yTicks) {
    svg.append(
      s("line", { class: "grid", x1: EDGE.left, x2: wide - EDGE.right, y1: y(tick), y2: y(tick) }),
      s("text", { class: "tick", x: EDGE.left - 6, y: y(tick) + 4, "text-anchor": "end" }, yText(tick)),
    );
  }
  for (const tick of xTicks) {
    svg.append(
      s("line", { class: "grid", y1: EDGE.top, y2: high - EDGE.bottom, x1: x(tick), x2: x(tick) }),
      s("text", { class: "tick", x: x(tick), y: high - EDGE.bottom + 14, "text-anchor": "middle" }, xText(tick)),
    );
  }
  svg.append(
    s("text", { class: "axis-name", x: wide - EDGE.right, y: high - 4, "text-anchor": "end" }, xName),
    s("text", { class: "axis-name", x: 0, y: 10 }, yName),
  );
}

/** Draw predictions and observations as a scatter plot. points: [predicted, observed, text]. */
export function against(points, { label, text, expected, observed }) {
  const svg = frame(label);
  const most = Math.max(...points.map(([a, b]) => Math.max(a, b)), 1e-9);
  const ticks = roundTicks(most);
  const top = ticks.at(-1);
  const x = (value) => EDGE.left + (value / top) * (WIDE - EDGE.left - EDGE.right);
  const y = (value) => HIGH - EDGE.bottom - (value / top) * (HIGH - EDGE.top - EDGE.bottom);
  axes(svg, { x, y, xTicks: ticks, yTicks: ticks, xText: text, yText: text, xName: expected, yName: observed });
  svg.append(
    s("line", { class: "agree", x1: x(0), y1: y(0), x2: x(top), y2: y(top) }),
    s("text", { class: "tick", x: x(top) - 4, y: y(top) + 18, "text-anchor": "end" }, "as predicted"),
  );
  for (const [a, b, title] of points) {
    svg.append(s("circle", { class: "point", cx: x(a), cy: y(b), r: 3.5 }, s("title", {}, title)));
  }
  return svg;
}

/** Return the time axis of a chart: a function, its ticks and their text. */
function timeAxis(from, to, wide) {
  const room = wide - EDGE.left - EDGE.right;
  const x = (time) => EDGE.left + ((time - from) / Math.max(to - from, 1e-9)) * room;
  const ticks = [0.08, 0.5, 0.92].map((part) => from + part * (to - from));
  const labels = ticks.map(format.at);
  return { x, xTicks: ticks.filter((_, k) => labels.indexOf(labels[k]) === k), xText: format.at };
}

/** Draw values over time, points [time, value, text]: bars, or steps where each holds until the next. */
export function overTime(points, { label, text, name, bars = false, until = 0 }) {
  const svg = frame(label);
  const from = points[0][0];
  const to = Math.max(points.at(-1)[0], until, from + 1);
  const yTicks = roundTicks(Math.max(...points.map(([, value]) => value), 1e-9));
  const top = yTicks.at(-1);
  const y = (value) => HIGH - EDGE.bottom - (value / top) * (HIGH - EDGE.top - EDGE.bottom);
  const time = timeAxis(from, to, WIDE);
  axes(svg, { ...time, y, yTicks, yText: text, xName: "", yName: name });
  if (!bars) {
    const parts = points.map(([when, value], k) => (k === 0 ? `M${time.x(when)},${y(value)}` : `H${time.x(when)}V${y(value)}`));
    svg.append(s("path", { class: "path", d: `${parts.join("")}H${time.x(Math.max(points.at(-1)[0], until))}` }));
  }
  for (const [when, value, title] of points) {
    const tip = s("title", {}, title ?? `${format.at(when)}: ${text(value)}`);
    svg.append(bars
      ? s("rect", { class: "bar", x: time.x(when) - 2, width: 4, y: y(value), height: Math.max(y(0) - y(value), 0.5) }, tip)
      : s("circle", { class: "point", cx: time.x(when), cy: y(value), r: 3 }, tip));
  }
  return svg;
}

/** Draw the chosen values over time as steps: [time, value, explored]. */
export function steps(chosen, values, { label, to }) {
  const wide = 560;
  const high = EDGE.top + EDGE.bottom + Math.max(values.length, 2) * 22;
  const svg = frame(label, wide, high);
  svg.classList.add("wide");
  const from = chosen[0][0];
  const time = timeAxis(from, Math.max(to, from + 1), wide);
  const y = (value) => high - EDGE.bottom - 11 - values.indexOf(value) * 22;
  axes(svg, { ...time, y, yTicks: values, yText: (value) => String(value), xName: "", yName: "", wide, high });
  let path = "";
  const marks = [];
  chosen.forEach(([when, value, explored], k) => {
    const next = chosen[k + 1]?.[0] ?? Math.max(to, from + 1);
    path += `${k === 0 ? "M" : "L"}${time.x(when)},${y(value)}L${time.x(next)},${y(value)}`;
    const tip = s("title", {}, `${format.at(when)}: ${value}, ${explored ? "explored" : "best known value"}`);
    marks.push(explored
      ? s("circle", { class: "tried", cx: time.x(when), cy: y(value), r: 4 }, tip)
      : s("rect", { class: "known", x: time.x(when) - 3, y: y(value) - 3, width: 6, height: 6 }, tip));
  });
  svg.append(s("path", { class: "path", d: path }), ...marks);
  return svg;
}
