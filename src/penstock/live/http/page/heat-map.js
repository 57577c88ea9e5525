// Bandwidth of each I/O node over time, on the time axis of the lanes.

import { grid } from "./axis.js";
import { AsTable, h, table, setText } from "./dom.js";
import { heat, palette } from "./palette.js";
import { Surface } from "./surface.js";
import * as format from "./format.js";

const [TALLEST, LEAST, ROOM] = [26, 5, 190];
const TABLE_SAMPLES = 20;
const LASTS = 3; // the longest time, in seconds, that a sample stands for

export class HeatMap {
  constructor({ model, range, readout }) {
    Object.assign(this, { model, range, readout });
    this.cursor = null; // {row, time}
    this.canvas = h("canvas", { class: "heat", tabindex: 0, role: "img" });
    this.labels = h("div", { class: "heat-labels", "aria-hidden": "true" });
    this.surface = new Surface(this.canvas, (pen, width) => this.paint(pen, width));
    this.legend = h("canvas", { class: "heat-legend", "aria-hidden": "true" });
    this.ramp = new Surface(this.legend, (pen, width, height) => {
      for (let x = 0; x < width; x += 1) {
        pen.fillStyle = heat(x / (width - 1));
        pen.fillRect(x, 0, 1, height);
      }
    });
    this.most = h("span", { class: "num" });
    this.scale = h("div", { class: "heat-scale" }, "0", this.legend, this.most);
    this.alternative = new AsTable("Bandwidth of I/O nodes", () => this.table());
    this.element = h("div", { class: "heat-map" }, h("div", { class: "heat-body" }, this.labels, this.canvas), this.alternative.element);
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
  }

  get nodes() {
    return this.model.head?.io_nodes ?? [];
  }

  get rowHeight() {
    return Math.max(LEAST, Math.min(TALLEST, Math.floor(ROOM / (this.nodes.length + 1))));
  }

  /** Return a sample's rate in a row; the last row is direct. */
  value(sample, row) {
    return row < this.nodes.length ? sample.io_nodes[this.nodes[row].number] ?? null : sample.direct;
  }

  name(row) {
    return row < this.nodes.length ? `I/O node ${this.nodes[row].number}` : "direct";
  }

  update() {
    const rows = this.nodes.length + 1;
    const high = this.rowHeight;
    this.canvas.style.height = `${rows * high}px`;
    while (this.labels.children.length < rows) this.labels.append(h("div", { class: "heat-label" }));
    while (this.labels.children.length > rows) this.labels.lastChild.remove();
    const every = Math.ceil(11 / high);
    for (let row = 0; row < rows; row += 1) {
      const label = this.labels.children[row];
      const node = this.nodes[row];
      const down = node && node.state !== "serving";
      setText(label, row % every === 0 || row === rows - 1 ? this.name(row) + (down ? ` (${node.state})` : "") : "");
      label.style.height = `${high}px`;
      label.classList.toggle("down", Boolean(down));
    }
    this.top = 0;
    let [sum, busiest, busy] = [0, null, -1];
    const last = this.model.samples.at(-1);
    for (const sample of this.model.samples) {
      for (const value of sample.io_nodes) if (value > this.top) this.top = value;
      if (sample.direct > this.top) this.top = sample.direct;
    }
    for (let row = 0; last && row < this.nodes.length; row += 1) {
      const value = this.value(last, row) ?? 0;
      sum += value;
      if (value > busy) [busy, busiest] = [value, row];
    }
    setText(this.most, this.top > 0 ? format.rate(this.top) : "no traffic yet");
    const summary = last
      ? `Bandwidth over time: ${format.some(this.nodes.length, "I/O node")} move ${format.rate(sum)} now` +
        (busy > 0 ? `, most through ${this.name(busiest)} (${format.rate(busy)})` : "") +
        `; ${format.rate(last.direct)} direct. Arrow keys read single values.`
      : "Bandwidth over time: no samples yet.";
    this.canvas.setAttribute("aria-label", summary);
    this.surface.request();
    this.alternative.refresh();
  }

  paint(pen, width) {
    const { from, to } = this.range();
    const high = this.rowHeight;
    const samples = this.model.samples;
    const scale = width / (to - from);
    const colours = palette();
    const tall = (this.nodes.length + 1) * high - 1;
    pen.fillStyle = colours.deadHatch; // no sample
    pen.fillRect(0, 0, width, tall);
    const columns = this.columns(samples, from, to, scale, width);
    this.measured(pen, columns, tall, to - samples.at(-1)?.time < LASTS ? width : 0);
    for (let row = 0; row <= this.nodes.length; row += 1) {
      for (const [left, right, first, last] of columns) {
        let most = null; // the largest of the samples of a pixel
        for (let k = first; k <= last; k += 1) {
          const value = this.value(samples[k], row);
          if (value !== null && value > (most ?? -1)) most = value;
        }
        if (most === 0 || (most !== null && this.top <= 0)) continue;
        if (most === null) pen.clearRect(left, row * high, right - left, high - 1);
        pen.fillStyle = most === null ? colours.deadHatch : heat(most / this.top);
        pen.fillRect(left, row * high, right - left, high - 1);
      }
      if (this.nodes[row] && this.nodes[row].state !== "serving") {
        pen.fillStyle = colours.deadHatch;
        pen.fillRect(0, row * high, width, high - 1);
      }
    }
    pen.globalAlpha = 0.35;
    grid(pen, this.range(), width, (this.nodes.length + 1) * high);
    pen.globalAlpha = 1;
    if (this.cursor && document.activeElement === this.canvas) {
      const x = (this.cursor.time - from) * scale;
      pen.strokeStyle = colours.focus;
      pen.lineWidth = 2;
      pen.strokeRect(Math.max(x - scale, 0), this.cursor.row * high + 1, Math.max(scale, 5), high - 3);
    }
  }

  /** Fill the times with samples with the colour of 0, several columns at once. */
  measured(pen, columns, tall, until) {
    pen.fillStyle = heat(0);
    for (let k = 0; k < columns.length; k += 1) {
      const left = columns[k][0];
      while (k + 1 < columns.length && columns[k + 1][0] <= columns[k][1]) k += 1;
      const right = k === columns.length - 1 ? Math.max(columns[k][1], until) : columns[k][1];
      pen.clearRect(left, 0, right - left, tall);
      pen.fillRect(left, 0, right - left, tall);
    }
  }

  /** Return [left, right, first sample, last sample] of columns at least a pixel wide. */
  columns(samples, from, to, scale, width) {
    const columns = [];
    for (let k = 0; k < samples.length; k += 1) {
      const right = (samples[k].time - from) * scale;
      if (right < 0) continue;
      const before = k > 0 ? Math.max(samples[k - 1].time, samples[k].time - LASTS) : samples[k].time - 1;
      const left = Math.max(0, Math.floor((before - from) * scale));
      const edge = Math.min(width, Math.max(Math.floor(right), left + 1));
      const last = columns.at(-1);
      if (last && edge <= last[1]) last[3] = k;
      else columns.push([last ? Math.max(left, last[1]) : left, edge, k, k]);
    }
    return columns;
  }

  say(row, sample, aloud) {
    const queued = row < this.nodes.length ? sample.queued?.[this.nodes[row].number] : undefined;
    const more = queued ? `, ${format.some(queued, "request")} queued` : "";
    const value = this.value(sample, row);
    this.readout(`${this.name(row)} at ${format.at(sample.time)}: ${value === null ? "no answer" : format.rate(value)}${more}`, aloud);
  }

  key(event) {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const samples = this.model.samples;
    if (!(event.key in steps) || samples.length === 0) return;
    event.preventDefault();
    const [down, right] = steps[event.key];
    const at = this.cursor ? samples.findIndex(({ time }) => time >= this.cursor.time) : samples.length - 1;
    const k = Math.max(0, Math.min(samples.length - 1, (at < 0 ? samples.length - 1 : at) + right));
    const row = Math.max(0, Math.min(this.nodes.length, (this.cursor?.row ?? 0) + down));
    this.cursor = { row, time: samples[k].time };
    this.say(row, samples[k], true);
    this.surface.request();
  }

  point(event) {
    const { from, to } = this.range();
    const time = from + (event.offsetX / this.canvas.clientWidth) * (to - from);
    const sample = this.model.samples.find((each) => each.time >= time);
    const row = Math.floor(event.offsetY / this.rowHeight);
    if (!sample || row > this.nodes.length) return;
    if (sample.time - time > LASTS) this.readout(`${this.name(row)} at ${format.at(time)}: unknown`, false);
    else this.say(row, sample, false);
  }

  table() {
    const samples = this.model.samples.slice(-TABLE_SAMPLES).reverse();
    const rows = samples.map((sample) => [
      format.at(sample.time),
      ...[...this.nodes.keys(), this.nodes.length].map((row) => ({ text: format.rate(this.value(sample, row)), class: "num" })),
    ]);
    const heads = ["time", ...[...this.nodes.keys(), this.nodes.length].map((row) => this.name(row))];
    return table(`The last ${TABLE_SAMPLES} seconds, newest first`, heads, rows);
  }
}
