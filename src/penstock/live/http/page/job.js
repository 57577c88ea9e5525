// One job: its phases, access pattern, w_iter, predicted and observed phases, and its waits.

import { request } from "./request.js";
import { against, overTime } from "./charts.js";
import { card, h, table, setText } from "./dom.js";
import { Gantt } from "./gantt.js";
import { noJobs } from "./overview.js";
import * as format from "./format.js";

const INTERVAL = 2;
const [LISTED, LINKED, LOOK_BACK] = [40, 60, 300];
const MIB = 1 << 20;
const num = (text) => ({ text, class: "num" });
const known = (value) => value !== null && value !== undefined;

export class JobPage {
  constructor({ model }) {
    this.model = model;
    this.id = null;
    this.requested = 0;
    this.heading = h("h2", { class: "job-name", tabindex: -1 });
    this.facts = h("dl", { class: "facts" });
    this.readout = h("output", { class: "readout" }, "Point at the lane, or move along it with the arrow keys.");
    this.gantt = new Gantt({
      label: "Phases of this job",
      lane: () => this.lane(),
      look: () => ({ text: this.id ?? "" }),
      open: () => {},
      readout: (text, aloud) => {
        this.readout.setAttribute("aria-live", aloud ? "polite" : "off");
        setText(this.readout, text);
      },
      heights: [44, 44],
    });
    this.seconds = h("div", {});
    this.bytes = h("div", {});
    this.iterations = h("div", {});
    this.waited = h("div", {});
    this.pattern = h("div", {});
    this.phases = h("div", { class: "scrolls phases", tabindex: 0, role: "region", "aria-label": "Phases of this job" });
    this.problem = h("div", { class: "teach", hidden: true });
    this.body = h(
      "div", { class: "job-body" },
      card("Phases", { class: "area-lane" }, [], this.gantt.element, h("div", { class: "legend" }, this.readout)),
      card("Time of phases: predicted and observed", {}, [], this.seconds),
      card("Bytes of phases: predicted and observed", {}, [], this.bytes),
      card("w_iter over time", {}, [h("span", { class: "note" }, "time from one phase to the next, had the job been alone")], this.iterations),
      card("Waits for turns", {}, [], this.waited),
      card("Each phase", { class: "area-phases" }, [], this.phases),
      card("Access pattern and application", { class: "area-known" }, [], this.pattern),
    );
    this.element = h("div", { class: "job" }, h("div", { class: "job-head" }, this.heading, this.facts), this.problem, this.body);
  }

  lane() {
    const job = this.job ?? { began: 0, ended: 0, state: "ended" };
    return { began: job.began, ended: job.ended, state: job.state, stretches: this.model.stretches(this.id), known: this.model.knownSince };
  }

  /** Show a job by its id; without one, a list of jobs. */
  show(id) {
    if (id === (this.id ?? "") && id !== "") return;
    this.id = id || null;
    this.answer = null;
    this.requested = 0;
    this.body.hidden = true;
    this.problem.hidden = true;
    this.facts.replaceChildren();
    setText(this.heading, this.id ?? "Which job?");
    if (this.id) this.heading.focus({ preventScroll: true });
  }

  get job() {
    return this.model.jobs.get(this.id) ?? this.answer?.job;
  }

  update() {
    if (!this.element.isConnected || this.model.head === null) return;
    if (this.id === null) {
      this.choose();
      return;
    }
    const { now } = this.model;
    if (now - this.requested >= INTERVAL) this.load(now);
    if (this.answer) this.draw(now);
  }

  choose() {
    const jobs = this.model.ordered("newest", "", true).slice(0, LINKED);
    this.problem.hidden = false;
    const key = jobs.join(" ");
    if (key === this.chosenFrom) return;
    this.chosenFrom = key;
    this.problem.replaceChildren(jobs.length === 0 ? noJobs() : h(
      "div", {},
      h("p", {}, "Press Enter on a lane of the overview to open its job. The newest jobs:"),
      h("ul", { class: "job-list" }, jobs.map((id) => h("li", {}, h("a", { href: `#job/${encodeURIComponent(id)}` }, id)))),
    ));
  }

  async load(now) {
    const { id } = this;
    this.requested = now;
    try {
      const answer = await request(`/v1/jobs/${encodeURIComponent(id)}/phases`);
      if (id !== this.id) return;
      this.answer = answer;
      this.problem.hidden = true;
      this.body.hidden = false;
      this.charts();
      this.draw(this.model.now);
    } catch (error) {
      if (id !== this.id || error.status === 0) return;
      this.chosenFrom = null;
      this.problem.hidden = false;
      this.body.hidden = this.answer === null;
      this.problem.replaceChildren(
        h("p", { class: "lead" }, error.status === 404 ? "The controller does not know this job." : error.message),
        h("p", {}, error.status === 404 ? "Check its id: a name and a number, such as solver.3. Jobs that ended are shown for 15 minutes; penstock status lists the last hundred." : error.hint),
      );
    }
  }

  draw(now) {
    const { job } = this;
    if (job === undefined) return;
    const does = this.model.runs(job) ? job.doing : job.state;
    const facts = [
      ["state", does], ["for", job.since && this.model.runs(job) ? format.span(now - job.since) : format.NONE],
      ["share granted", job.doing === "transferring" ? format.share(job.share) : format.NONE],
      ["share received", format.share(job.received)],
      ["file systems", (job.file_systems ?? []).join(", ") || format.NONE],
      ["waits on", (job.waits_on ?? []).join(", ") || format.NONE],
      ["behind", (job.behind ?? []).join(", ") || format.NONE],
      ["at most", known(job.at_most_seconds) ? `${format.span(job.at_most_seconds)} longer` : format.NONE],
      ["I/O nodes allowed", job.io_nodes.join(", ") || "direct"], ["I/O nodes used", (job.io_nodes_used ?? []).join(", ") || "none"], ...(job.mode ? [["mode", job.mode]] : []),
      ["nodes", format.count(job.nodes)], ["processes", format.count(job.processes)],
      ["began", format.at(job.began)], ["run time", format.span((job.ended ?? now) - job.began)],
      ["w_iter", format.span(job.w_iter)], ["rate", format.rate(job.rate)],
      ["through I/O nodes", format.size(job.forwarded_bytes)], ["direct", format.size(job.direct_bytes)],
      ["waited", format.span(job.waited_seconds)], ["fail-opens", format.count(job.fail_opens)],
    ];
    if (job.user) facts.unshift(["user", job.user]);
    if (known(job.zero_bytes_reason)) facts.push(["0 bytes because", job.zero_bytes_reason]);
    if (job.command) facts.push(["command", Array.isArray(job.command) ? job.command.join(" ") : job.command]);
    if (this.facts.children.length !== facts.length) {
      this.facts.replaceChildren(...facts.map(([name]) => h("div", { class: `fact-${name.replace(/[^a-z]/gi, "-")}` }, h("dt", {}, name), h("dd", {}))));
    }
    facts.forEach(([, value], k) => {
      const cell = this.facts.children[k].lastChild;
      setText(cell, value);
      cell.title = value;
    });
    const to = job.ended && job.ended < now - 5 ? job.ended + 2 : now;
    const from = Math.max(job.began - 1, to - LOOK_BACK);
    this.gantt.show([this.id], { from, to: Math.max(to, from + 5), now });
  }

  charts() {
    const phases = this.answer.phases;
    const over = phases.filter((phase) => known(phase.seconds));
    const when = (phase) => format.at(phase.began);
    this.compare(this.seconds, over.filter((phase) => known(phase.predicted_seconds)).map((phase) => [
      phase.predicted_seconds, phase.seconds, `${when(phase)}: predicted ${format.span(phase.predicted_seconds)}, took ${format.span(phase.seconds)}`,
    ]), { label: "Seconds of phases", text: format.span, expected: "predicted, alone", observed: "observed", note: "The prediction is for the job alone; the observation includes the effect of other jobs." });
    this.compare(this.bytes, over.filter((phase) => known(phase.predicted_bytes) && known(phase.bytes)).map((phase) => [
      phase.predicted_bytes / MIB, phase.bytes / MIB, `${when(phase)}: predicted ${format.size(phase.predicted_bytes)}, moved ${format.size(phase.bytes)}`,
    ]), { label: "Bytes of phases", text: (value) => `${format.figure(value)} MiB`, expected: "predicted", observed: "observed" });
    const iterations = (this.answer.w_iter ?? []).filter(([, value]) => known(value));
    this.iterations.replaceChildren(iterations.length > 0
      ? overTime(iterations, { label: `w_iter over time, ${format.span(iterations.at(-1)[1])} now`, text: format.span, name: "", until: phases.at(-1)?.began ?? 0 })
      : h("p", { class: "empty" }, "Not known before two phases: w_iter is the time from one to the next."));
    const waits = phases.filter((phase) => phase.waited_seconds > 0);
    const sum = waits.reduce((all, phase) => all + phase.waited_seconds, 0);
    this.waited.replaceChildren(waits.length > 0
      ? overTime(waits.map((phase) => [phase.began, phase.waited_seconds]), { label: `${waits.length} of ${phases.length} phases waited, ${format.span(sum)} together`, text: format.span, name: "", bars: true })
      : h("p", { class: "empty" }, phases.length > 0 ? "No phase waited for a turn." : "No phase yet."));
    this.list(phases);
    this.showApplication();
  }

  compare(place, points, options) {
    if (points.length === 0) {
      place.replaceChildren(h("p", { class: "empty" }, "No prediction yet: the controller learns from the job's first phases, from its application, or from penstock run --hint."));
      return;
    }
    const off = points.map(([a, b]) => Math.abs(b - a) / Math.max(a, 1e-9)).sort((a, b) => a - b);
    const median = off[off.length >> 1];
    const label = `${options.label}, predicted and observed: ${format.some(points.length, "phase")}, half of them within ${format.share(median)}`;
    place.replaceChildren(against(points, { ...options, label }), h("p", { class: "note" }, `${format.some(points.length, "phase")}; half of them within ${format.share(median)} of the prediction. ${options.note ?? ""}`));
  }

  list(phases) {
    const waits = (phase) => !known(phase.admitted) && !known(phase.ended) && ["waiting", "would wait"].includes(this.job?.doing);
    const rows = phases.slice(-LISTED).reverse().map((phase) => [
      format.at(phase.began), num(format.span(waits(phase) ? Math.max(this.model.now - phase.began, 0) : phase.waited_seconds)),
      num(format.span(phase.predicted_seconds)), num(known(phase.seconds) ? format.span(phase.seconds) : waits(phase) ? "waits" : "in progress"),
      num(format.size(phase.predicted_bytes)), num(format.size(phase.bytes)), num(waits(phase) ? format.NONE : format.share(phase.share)),
    ]);
    const heads = ["began", num("waited"), num("predicted time"), num("observed time"), num("predicted bytes"), num("observed bytes"), num("mean granted share")];
    const cut = phases.length > LISTED ? h("p", { class: "more" }, `and ${phases.length - LISTED} earlier ones`) : null;
    this.phases.replaceChildren(rows.length > 0 ? table(`The last ${LISTED} phases, newest first`, heads, rows) : h("p", { class: "empty" }, "No phase yet."), cut ?? "");
  }

  /** Say why no access pattern of the job is known. */
  noPattern() {
    const { head } = this.model;
    if (!head.tuned) return "No access pattern is known: this site runs without penstock up --tune, which makes I/O nodes detect them.";
    return "No access pattern is known: one is noted while the job transfers and has an I/O node to itself, and the I/O node recognizes it.";
  }

  showApplication() {
    const patterns = this.answer.pattern ?? [];
    const application = this.answer.known;
    const parts = patterns.slice(-6).reverse().map(([time, name]) => h("li", {}, h("span", { class: "note" }, format.at(time)), ` ${name}`));
    const lines = application === null || application === undefined ? [] : Object.entries(application)
      .filter(([, value]) => known(value) && typeof value !== "object")
      .map(([name, value]) => [name.replaceAll("_", " "), num(FORMATS[name]?.(value) ?? format.figure(value))]);
    this.pattern.replaceChildren(
      parts.length > 0 ? h("ul", { class: "plain-list" }, parts) : h("p", { class: "empty" }, this.job?.pattern ? `Access pattern: ${this.job.pattern}` : this.noPattern()),
      lines.length > 0 ? table("What the store knows of its application", ["its application, including this run", ""], lines) : h("p", { class: "empty" }, "The store knows no run of its application."),
    );
  }
}

const FORMATS = { w_iter: format.span, phase_bytes: format.size, compute_seconds: format.span, bandwidth: format.rate, seconds: format.span };
