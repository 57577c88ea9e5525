// The result of a what-if: the model check first, then metrics, jobs and lanes. Only what exceeds
// the model error is coloured, as the result says: nothing is judged here.

import { card, gauge, h, table, setText } from "./dom.js";
import { Gantt } from "./gantt.js";
import * as format from "./format.js";

const METRICS = [
  ["utilization", "utilization", "higher is better", format.share],
  ["efficiency", "efficiency", "higher is better", format.share],
  ["max_stretch", "max stretch", "lower is better", format.figure],
  ["io_slowdown", "I/O slowdown", "lower is better", format.figure],
  ["min_yield", "min yield", "higher is better", format.figure],
  ["makespan", "makespan", "lower is better", format.span],
];
const NAMED = 3;

const chip = (text, kind) => h("span", { class: `chip ${kind}` }, text);
const percent = (part) => (part === null || part === undefined ? format.NONE : format.change(part));

/** Return how a policy compares in a metric: "wins", "worse", or "" within the model error. */
export function verdict({ gain, beyond_model_error: beyond }, metric) {
  if (!beyond[metric]) return "";
  return gain[metric] > 0 ? "wins" : "worse";
}

export class Comparison {
  constructor({ result }) {
    this.result = result;
    // What ran comes first: all others are compared with it.
    this.policies = [result.ran, ...Object.keys(result.policies).filter((name) => name !== result.ran)];
    this.readout = h("output", { class: "readout" });
    this.element = h(
      "div", { class: "comparison" },
      card("Model check", { class: "area-check" }, [], this.check(), this.notes()),
      card("Metrics", { class: "area-metrics" }, [chip("simulated", "simulated")], this.metrics(), this.skipped()),
      result.kind === "allocation" ? card("What policies know", { class: "area-known" }, [chip("simulated", "simulated")], this.known()) : null,
      card("Jobs that gain and lose", { class: "area-changes" }, [chip("simulated", "simulated"), h("span", { class: "note" }, `run time, compared with ${result.ran}, simulated; only what exceeds the model error`)], this.changes()),
      this.lanes(),
    );
  }

  check() {
    const { ran, record, model_check: checks, job_error: off, verdict: sentence } = this.result;
    const mode = record.mode === null ? "" : ` (mode ${record.mode})`;
    const rows = METRICS.map(([key, name, , text]) => [
      name,
      { text: text(checks[key].recorded), class: "num" },
      { text: text(checks[key].simulated), class: "num" },
      { text: percent(checks[key].error), class: "num" },
    ]);
    const heads = ["", ...["recorded", `${ran}, simulated`, "error"].map((text) => ({ text, class: "num" }))];
    return [
      h("p", { class: "verdict" }, `${ran} ran${mode}. How far its simulation is from the record is the error of the model; run times are off by ${format.change(off).replace("+", "")} per job. ${sentence[0].toUpperCase()}${sentence.slice(1)}.`),
      table("What ran, simulated, and what was recorded", heads, rows, { class: "check-table" }),
    ];
  }

  metrics() {
    const { policies, ran, record } = this.result;
    const none = record.missing?.matters ? "not judged" : "within error";
    const cell = (policy, key, text) => {
      const kind = policy === ran ? "" : verdict(policies[policy], key);
      const value = h("span", {}, text(policies[policy][key]));
      if (policy === ran) return { text: value, class: "num" };
      const gain = kind ? `${percent(policies[policy].gain[key])}, ${kind === "wins" ? "better" : "worse"}` : none;
      const mark = kind === "wins" ? [h("span", { "aria-hidden": "true" }, " \u25b2")] : [];
      return { text: h("span", {}, value, mark, h("span", { class: "gain" }, gain)), class: `num ${kind}` };
    };
    const rows = METRICS.map(([key, name, direction, text]) => [
      h("span", {}, name, h("span", { class: "note" }, ` ${direction}`)),
      ...this.policies.map((policy) => cell(policy, key, text)),
    ]);
    const heads = ["", ...this.policies.map((policy) => ({ text: policy === ran ? `${policy}, which ran` : policy, class: "num" }))];
    return table("Metrics of the simulated policies", heads, rows, { class: "metrics" });
  }

  /** Return the policies that could not be simulated, with the reasons. */
  skipped() {
    const { skipped } = this.result;
    if (skipped.length === 0) return null;
    return h("ul", { class: "plain-list note skipped" }, skipped.map(({ policy, reason }) => h("li", {}, `${policy} is not simulated: ${reason}`)));
  }

  /** Return what each allocation policy must know of a job, and of how many jobs it does not. */
  known() {
    const { policies, ran, record } = this.result;
    const listed = (counts, text) => Object.entries(counts).map(text).join(", ");
    const rows = this.policies.map((policy) => {
      const { needs, decisions } = policies[policy];
      const { unmet_needs: unmet, jobs_by_fallback: fallback, reasons, moves } = decisions;
      return [
        policy === ran ? `${policy}, which ran` : policy,
        needs.join(", ") || "nothing",
        listed(unmet, ([need, jobs]) => `${need} of ${format.some(jobs, "job")}`) || format.NONE,
        format.some(fallback, "job"),
        listed(reasons, ([reason, times]) => `${reason} ${format.count(times)}\u00d7`) || "as recorded",
        format.count(moves),
      ];
    });
    const heads = ["", "must know", "not known", "decided by the fallback policy", "reasons of decisions", "moves of running jobs"];
    const without = record.cuts.jobs_without_curve ?? 0;
    return [
      table("What allocation policies know of jobs", heads, rows, { class: "known-table" }),
      h("p", { class: "note" }, without === 0
        ? "The curves of all jobs are known at the I/O nodes that they had."
        : `${format.some(without, "job")} without a known curve: the I/O takes as long as recorded on any number of I/O nodes.`),
    ];
  }

  notes() {
    const { record } = this.result;
    const notes = [`${format.some(record.jobs, "job")}, ${format.some(record.iterations, "iteration")}; the controller's sharing policy was ${record.policy}.`];
    if (this.result.kind === "allocation") notes.push(`Simulated under ${this.result.sharing}, the sharing policy that ran.`);
    notes.push(...(record.notes ?? []));
    return h("ul", { class: "plain-list note" }, notes.map((note) => h("li", {}, note)));
  }

  changes() {
    const { policies, ran } = this.result;
    const side = (policy) => {
      const { gain, lose } = policies[policy].jobs;
      const most = Math.max(...[...gain, ...lose].map(({ change }) => Math.abs(change)), 1e-9);
      const row = ({ job, ran: before, simulated: now, change }) => [
        { text: job, title: job },
        { text: `${format.span(before)} \u2192 ${format.span(now)}`, class: "num" },
        { text: format.change(change), class: change < 0 ? "num gains" : "num loses" },
        { text: gauge(Math.abs(change) / most, change < 0 ? "gains" : "loses"), class: "bar" },
      ];
      // A result names at most three jobs.
      const named = (verb, list) => (list.length < NAMED ? verb : `${verb} (the three that ${verb} most)`);
      const part = (title, list) => [h("h4", {}, title), list.length > 0 ? table(`${title} under ${policy}`, ["job", "", "", ""], list.map(row)) : h("p", { class: "empty" }, "none beyond the model error")];
      return h("div", { class: "change" }, h("h3", {}, policy), part(named("gain", gain), gain), part(named("lose", lose), lose));
    };
    return h("div", { class: "changes" }, this.policies.filter((policy) => policy !== ran).map(side));
  }

  lanes() {
    const { lanes } = this.result;
    if (!lanes) return h("p", { class: "empty" }, "This result has no lanes.");
    const all = [["recorded", lanes.recorded, false], ...this.policies.map((policy) => [policy, lanes.simulated[policy], true])];
    const gantts = all.map(([name, drawn, simulated]) => this.gantt(name, drawn, simulated));
    for (const one of gantts) {
      // One scroll bar moves all, so that the lanes of a job are side by side.
      one.gantt.rows.element.addEventListener("scroll", () => {
        for (const other of gantts) if (other !== one) other.gantt.rows.element.scrollTop = one.gantt.rows.element.scrollTop;
      }, { passive: true });
    }
    const until = Math.min(...all.map(([, drawn]) => drawn.until ?? Infinity));
    const notes = [
      lanes.left_out > 0 ? `the ${lanes.jobs.length} jobs with the most I/O; ${format.some(lanes.left_out, "job")} left out` : "one row per job, one time axis",
      Number.isFinite(until) ? `phases are shown up to ${format.span(until)}` : null,
    ].filter(Boolean);
    return card(
      "Side by side", { class: "area-side" }, [h("span", { class: "note" }, notes.join("; "))],
      h("div", { class: "side" }, gantts.map(({ element }) => element)), h("div", { class: "legend" }, this.readout),
    );
  }

  gantt(name, drawn, simulated) {
    const { jobs, window } = this.result.lanes;
    const to = Math.max(window[1], 1);
    const lanes = new Map(jobs.map((job, k) => [job.id, { began: job.began, ended: drawn.finish[k], state: "ended", stretches: [] }]));
    for (const [k, kind, start, end, share] of drawn.stretches) lanes.get(jobs[k].id).stretches.push([kind, start, end, share]);
    const gantt = new Gantt({
      label: simulated ? `Jobs under ${name}, simulated` : "Jobs as recorded",
      lane: (id) => lanes.get(id), look: (id) => ({ text: id }), open: () => {}, daily: false, heights: [16, 28],
      readout: (text, aloud) => {
        this.readout.setAttribute("aria-live", aloud ? "polite" : "off");
        setText(this.readout, text);
      },
    });
    // As high as its jobs need, but not higher than the window.
    gantt.rows.element.style.height = `min(50vh, ${2 + 28 * Math.max(lanes.size, 1)}px)`;
    gantt.show([...lanes.keys()], { from: 0, to, now: to });
    const head = h("h3", {}, name, simulated ? chip("simulated", "simulated") : chip("recorded", "plain"));
    return { gantt, element: h("div", { class: "side-lanes" }, head, gantt.element) };
  }
}
