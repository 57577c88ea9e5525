// The result of a what-if: metrics, the jobs that gain and lose most, and lanes side by side.

import { card, gauge, h, table, setText } from "./dom.js";
import { Gantt } from "./gantt.js";
import * as format from "./format.js";

const METRICS = [
  ["utilization", "utilization", 1, format.share],
  ["efficiency", "efficiency", 1, format.share],
  ["max_stretch", "max stretch", -1, format.figure],
  ["io_slowdown", "I/O slowdown", -1, format.figure],
  ["min_yield", "min yield", 1, format.figure],
  ["makespan", "makespan", -1, format.span],
];
const SAME = 1e-9;
const NAMED = 3;

const chip = (text, kind) => h("span", { class: `chip ${kind}` }, text);

/** Return -1, 0 or 1: the first is worse, equal or better; with sign 1 larger is better. */
export function better(a, b, sign) {
  if (typeof a !== "number" || typeof b !== "number") return 0;
  const scale = Math.max(Math.abs(a), Math.abs(b), 1e-300);
  return Math.abs(a - b) / scale < SAME ? 0 : Math.sign((a - b) * sign);
}

export class Comparison {
  constructor({ policies, result }) {
    this.result = result;
    this.policies = policies.filter((name) => result.simulated?.[name]);
    this.readout = h("output", { class: "readout" });
    this.element = h(
      "div", { class: "comparison" },
      card("Metrics", { class: "area-metrics" }, [chip("simulated", "simulated")], this.metrics(), this.notes()),
      card("Jobs that gain and lose", { class: "area-changes" }, [chip("simulated", "simulated"), h("span", { class: "note" }, "run time, compared with the record")], this.changes()),
      this.lanes(),
    );
  }

  metrics() {
    const { recorded, simulated } = this.result;
    const [first, second] = this.policies;
    const rows = METRICS.map(([key, name, sign, text]) => {
      const verdict = second ? better(simulated[first][key], simulated[second][key], sign) : 0;
      const cell = (policy, wins) => {
        const mark = wins ? [h("span", { "aria-hidden": "true" }, " \u25b2"), h("span", { class: "unseen" }, ", better")] : [];
        return { text: h("span", {}, text(simulated[policy][key]), mark), class: wins ? "num wins" : "num" };
      };
      return [
        h("span", {}, name, h("span", { class: "note" }, sign > 0 ? " higher is better" : " lower is better")),
        { text: text(recorded[key]), class: "num" },
        ...this.policies.map((policy, k) => cell(policy, (k === 0 && verdict > 0) || (k === 1 && verdict < 0))),
      ];
    });
    const heads = ["", { text: "recorded", class: "num" }, ...this.policies.map((policy) => ({ text: `${policy}, simulated`, class: "num" }))];
    return table("Metrics of both policies, simulated, and of the record", heads, rows, { class: "metrics" });
  }

  notes() {
    const { record } = this.result;
    const notes = [`${format.some(record.jobs, "job")}, ${format.some(record.iterations, "iteration")}; recorded under ${record.policy}.`];
    if (this.policies.includes(record.policy)) {
      notes.push(`The site ran ${record.policy}: where its two columns differ, the simulation differs from the site.`);
    }
    notes.push(...(record.notes ?? []));
    return h("ul", { class: "plain-list note" }, notes.map((note) => h("li", {}, note)));
  }

  changes() {
    const { simulated } = this.result;
    const side = (policy) => {
      const { gain = [], lose = [] } = simulated[policy].jobs ?? {};
      const most = Math.max(...[...gain, ...lose].map(({ change }) => Math.abs(change)), 1e-9);
      const row = ({ job, recorded, simulated: now, change }) => [
        { text: job, title: job },
        { text: `${format.span(recorded)} \u2192 ${format.span(now)}`, class: "num" },
        { text: format.change(change), class: change < 0 ? "num gains" : "num loses" },
        gauge(Math.abs(change) / most, change < 0 ? "gains" : "loses"),
      ];
      // A result names at most three jobs.
      const named = (verb, list) => (list.length < NAMED ? verb : `${verb} (the three that ${verb} most)`);
      const part = (title, list) => [h("h4", {}, title), list.length > 0 ? table(`${title} under ${policy}`, ["job", "", "", ""], list.map(row)) : h("p", { class: "empty" }, "none")];
      return h("div", { class: "change" }, h("h3", {}, policy), part(named("gain", gain), gain), part(named("lose", lose), lose));
    };
    return h("div", { class: "changes" }, this.policies.map(side));
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
