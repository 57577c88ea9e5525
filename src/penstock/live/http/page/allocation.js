// The I/O nodes of each job: one row per job, one column per I/O node, and one for direct.

import { AsTable, h, table } from "./dom.js";
import { palette } from "./palette.js";
import { Rows } from "./rows.js";
import { Surface } from "./surface.js";
import * as format from "./format.js";

const ROWS = [15, 22];
const TABLE_ROWS = 50;

export class Allocation {
  constructor({ model, open, readout }) {
    Object.assign(this, { model, readout });
    this.head = h("canvas", { class: "axis", "aria-hidden": "true" });
    this.header = new Surface(this.head, (pen, width, height) => this.paintHead(pen, width, height));
    this.rows = new Rows({
      label: "I/O nodes of each running job",
      heights: ROWS,
      look: (id) => ({ text: id }),
      paint: (pen, rows, width, active) => this.paint(pen, rows, width, active),
      open,
      along: (id) => id !== null && readout(this.inWords(id), true),
      point: (id) => id !== null && readout(this.inWords(id), false),
    });
    this.alternative = new AsTable("Allocation", () => this.table());
    this.element = h(
      "div", { class: "allocation" },
      h("div", { class: "gantt-axis" }, this.head), this.rows.element, this.alternative.element,
    );
  }

  update(ids) {
    this.rows.show(ids.filter((id) => this.model.jobs.has(id) && this.model.runs(this.model.jobs.get(id))));
    this.header.request();
    this.alternative.refresh();
  }

  columns(width) {
    const nodes = this.model.head?.io_nodes ?? [];
    const wide = Math.min(46, width / (nodes.length + 1));
    return { nodes, wide, place: new Map(nodes.map((node, k) => [node.number, k])) };
  }

  paintHead(pen, width, height) {
    const { nodes, wide } = this.columns(width);
    const every = Math.ceil(22 / wide);
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    nodes.forEach((node, k) => {
      pen.fillStyle = node.state === "serving" ? palette().muted : palette().bad;
      if (k % every === 0) pen.fillText(node.state === "serving" ? String(node.number) : `${node.number}\u00d7`, (k + 0.5) * wide, height / 2);
    });
    pen.fillStyle = palette().muted;
    pen.fillText(wide > 30 ? "direct" : "d", (nodes.length + 0.5) * wide, height / 2);
  }

  paint(pen, rows, width, active) {
    const { nodes, wide, place } = this.columns(width);
    const colours = palette();
    const high = this.rows.height;
    for (const { id, y } of rows) {
      const job = this.model.jobs.get(id);
      if (job === undefined) continue;
      if (id === active) {
        pen.fillStyle = colours.raised;
        pen.fillRect(0, y, width, high);
      }
      pen.fillStyle = colours.line;
      for (let k = 0; k <= nodes.length; k += 1) pen.fillRect((k + 0.5) * wide - 1, y + high / 2 - 1, 2, 2);
      const colour = { transferring: colours.io, waiting: colours.waitHatch, "would wait": colours.wouldHatch }[job.doing] ?? colours.compute;
      const used = new Set(this.used(job).map((number) => place.get(number) ?? nodes.length));
      const allowed = job.io_nodes.length > 0 ? job.io_nodes.map((number) => place.get(number)) : [nodes.length];
      pen.fillStyle = pen.strokeStyle = colour;
      for (const k of new Set([...allowed, ...used])) {
        if (k === undefined) continue;
        if (used.has(k)) pen.fillRect(k * wide + 1, y + 2, wide - 2, high - 4);
        else pen.strokeRect(k * wide + 1.5, y + 2.5, wide - 3, high - 5);
      }
    }
  }

  /** Return the numbers of the I/O nodes that moved data for a job; "direct" is one of them. */
  used(job) {
    return [...(job.io_nodes_used ?? []), ...(job.direct_bytes > 0 ? ["direct"] : [])];
  }

  inWords(id) {
    const job = this.model.jobs.get(id);
    if (job === undefined) return `${id}: no longer kept`;
    const where = job.io_nodes.length > 0 ? `may use I/O ${job.io_nodes.length > 1 ? "nodes" : "node"} ${job.io_nodes.join(", ")}` : "is direct";
    return `${id} ${where}; used: ${this.used(job).join(", ") || "none"}; ${job.doing}`;
  }

  table() {
    const rows = this.rows.ids.slice(0, TABLE_ROWS).map((id) => {
      const job = this.model.jobs.get(id);
      return [id, job?.io_nodes.join(", ") || "direct", (job && this.used(job).join(", ")) || "none", job?.doing ?? format.NONE];
    });
    return table(`I/O nodes of the first ${TABLE_ROWS} jobs`, ["job", "I/O nodes allowed", "used", "state"], rows);
  }
}
