// The overview: lanes, heat map, allocation, waiting jobs, and the top jobs and users.

import { Allocation } from "./allocation.js";
import { AsTable, card, h, table, setText } from "./dom.js";
import { Gantt } from "./gantt.js";
import { HeatMap } from "./heat-map.js";
import { ORDERS } from "./model.js";
import { Top } from "./top.js";
import { Waits } from "./waits.js";
import * as format from "./format.js";

const SPANS = [30, 60, 180, 300, 900];
const TABLE_ROWS = 50;
const num = (text) => ({ text, class: "num" });
const REMOVED = { began: 0, ended: 0, state: "ended", stretches: [] };

export function noJobs() {
  return h(
    "div", { class: "teach" },
    h("p", { class: "lead" }, "No job yet."),
    h("p", {}, "Start any command as a job; its reads and writes below a managed directory appear here as they happen:"),
    h("pre", {}, h("code", {}, "penstock run --state STATE -- ./simulation")),
    h("p", { class: "note" }, "STATE is the state directory of penstock up. Batch jobs of Slurm appear by themselves: see docs/live/slurm.md."),
  );
}

export class Overview {
  constructor({ model, open }) {
    Object.assign(this, { model, open });
    this.span = 60;
    this.paused = null; // the time at which the display is paused
    this.held = new Map(); // the labels at that time
    this.ids = [];
    this.order = h("select", { "aria-label": "Order of lanes", onchange: () => this.refresh() },
      Object.entries(ORDERS).map(([name, { label }]) => h("option", { value: name }, label)));
    this.filter = h("input", { type: "search", placeholder: "filter  /", "aria-label": "Show jobs whose name or user contains this", oninput: () => this.refresh() });
    this.ended = h("input", { type: "checkbox", checked: true, onchange: () => this.refresh() });
    this.spans = h("select", { "aria-label": "Time shown", onchange: () => this.zoomTo(Number(this.spans.value)) },
      SPANS.map((each) => h("option", { value: each, selected: each === this.span }, each < 60 ? `${each} s` : `${each / 60} min`)));
    this.pause = h("button", { type: "button", "aria-pressed": "false", onclick: () => this.togglePause() }, "Pause");
    this.readout = h("output", { class: "readout" });
    const setReadout = (text, aloud) => {
      this.readout.setAttribute("aria-live", aloud ? "polite" : "off");
      setText(this.readout, text);
    };
    this.gantt = new Gantt({ label: "Jobs and their phases", lane: (id) => this.lane(id), look: (id) => this.held.get(id) ?? this.look(id), open, readout: setReadout });
    this.heat = new HeatMap({ model, range: () => this.gantt.range, readout: setReadout });
    this.allocation = new Allocation({ model, open, readout: setReadout });
    this.waits = new Waits({ model });
    this.top = new Top({ model });
    this.teach = h("div", { class: "gantt-teach", hidden: true }, noJobs());
    this.lanesTable = new AsTable("Lanes", () => this.table());
    this.shown = h("span", { class: "note num" });
    const swatch = (kind, text) => h("span", { class: "key" }, h("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), text);
    this.legend = h("div", { class: "legend" }, swatch("io", "transfers; height is the granted share, numbers are granted / received"), swatch("wait", "waits"), swatch("would", "would wait"), swatch("compute", "computes"), swatch("unknown", "unknown"), this.readout);
    this.element = h(
      "div", { class: "overview" },
      card("Phases and shares", { class: "area-gantt" },
        [this.shown, this.filter, h("label", { class: "check" }, this.ended, "ended"), this.order, this.spans, this.pause],
        h("div", { class: "gantt-frame" }, this.gantt.element, this.teach), this.legend, this.lanesTable.element),
      card("Bandwidth of I/O nodes", { class: "area-heat" }, [this.heat.scale], this.heat.element),
      card("Waiting jobs", { class: "area-waits" }, [], this.waits.element),
      card("Top jobs and users", { class: "area-top" }, [], this.top.element),
      card("Allocation", { class: "area-allocation" }, [h("span", { class: "note" }, "I/O nodes of each job: filled are used, framed are allowed")], this.allocation.element),
    );
  }

  lane(id) {
    const job = this.model.jobs.get(id);
    if (job === undefined) return REMOVED;
    return { began: job.began, ended: job.ended, state: job.state, stretches: this.model.stretches(id), known: this.model.knownSince };
  }

  look(id) {
    const job = this.model.jobs.get(id);
    if (job === undefined) return { text: id };
    const runs = this.model.runs(job);
    const received = job.received === null || job.received === undefined ? "" : ` / ${format.share(job.received)}`;
    const does = { transferring: `${format.share(job.share)}${received}`, waiting: "waits", "would wait": "would wait" };
    const note = runs ? does[job.doing] ?? "" : job.state;
    const shares = runs && job.doing === "transferring" ? ` (${format.shares(job)})` : "";
    const title = `${id}: ${runs ? job.doing : job.state}${shares}${job.user ? `, ${job.user}` : ""}`;
    return { text: id, note, title, class: `${runs ? `does-${job.doing.replace(" ", "-")}` : `is-${job.state}`}` };
  }

  zoomTo(span) {
    this.span = span;
    this.spans.value = String(span);
    this.refresh();
  }

  /** Show less time (-1) or more time (1). */
  zoom(step) {
    const k = SPANS.indexOf(this.span) + step;
    if (k >= 0 && k < SPANS.length) this.zoomTo(SPANS[k]);
  }

  togglePause() {
    this.paused = this.paused === null ? this.model.now : null;
    this.pause.setAttribute("aria-pressed", String(this.paused !== null));
    setText(this.pause, this.paused === null ? "Pause" : "Resume");
    this.held = new Map(this.paused === null ? [] : this.ids.map((id) => [id, this.look(id)]));
    this.refresh();
  }

  /** Show the present state; while paused, only remove jobs that are no longer kept. */
  update() {
    if (this.model.head === null || !this.element.isConnected) return;
    if (this.paused === null) this.refresh();
    else if (!this.ids.every((id) => this.model.jobs.has(id))) {
      this.ids = this.ids.filter((id) => this.model.jobs.has(id));
      this.gantt.show(this.ids, this.gantt.range);
    }
  }

  /** Draw according to the controls. */
  refresh() {
    const { model } = this;
    if (model.head === null || !this.element.isConnected) return;
    const to = this.paused ?? model.now;
    this.ids = model.ordered(this.order.value, this.filter.value, this.ended.checked);
    if (this.paused !== null) this.ids = this.ids.filter((id) => model.jobs.get(id).began <= to);
    setText(this.shown, this.ids.length === model.jobs.size ? format.some(this.ids.length, "job") : `${format.count(this.ids.length)} of ${format.some(model.jobs.size, "job")}`);
    this.teach.hidden = model.jobs.size > 0;
    this.title();
    this.gantt.show(this.ids, { from: to - this.span, to, now: to });
    // One part per frame: no task is long, however many jobs there are.
    const now = this.paused !== null ? [] : [() => this.waits.update(), () => this.top.update(), () => this.allocation.update(this.ids)];
    this.rest = [() => this.heat.update(), ...now, () => this.lanesTable.refresh()];
    if (!this.resting) this.later();
  }

  /** In observe and advise no job waits, and the shares are those that the policy would grant. */
  title() {
    const { mode, policy } = this.model.head;
    const would = mode === "observe" || mode === "advise";
    setText(this.element.querySelector(".area-gantt h2"), would ? `Phases and shares, as ${policy} would grant` : "Phases and shares");
  }

  later() {
    this.resting = true;
    requestAnimationFrame(() => {
      try {
        this.rest.shift()?.();
      } finally {
        this.resting = this.rest.length > 0;
        if (this.resting) this.later();
      }
    });
  }

  table() {
    const rows = this.ids.filter((id) => this.model.jobs.has(id)).slice(0, TABLE_ROWS).map((id) => {
      const job = this.model.jobs.get(id);
      const runs = this.model.runs(job);
      return [
        h("a", { href: `#job/${encodeURIComponent(id)}` }, id), job.user ?? format.NONE, runs ? job.doing : job.state,
        num(runs && job.since ? format.span(this.model.now - job.since) : format.NONE),
        num(job.doing === "transferring" ? format.share(job.share) : format.NONE), num(format.share(job.received)),
        (job.behind ?? []).join(", ") || format.NONE, num(format.rate(job.rate)),
      ];
    });
    return table(`The first ${TABLE_ROWS} jobs`, ["job", "user", "state", num("for"), num("granted"), num("received"), "behind", num("rate")], rows);
  }
}
