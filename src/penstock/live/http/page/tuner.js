// The Council: which value each I/O node has of what is tuned, over time, and what was learnt.

import { ask } from "./ask.js";
import { steps } from "./charts.js";
import { card, gauge, h, table } from "./dom.js";
import * as format from "./format.js";

const ASK_EVERY = 3;
const CHARTS = 16;

/** Return a value of what is tuned as people write it. */
function worded(parameter, value) {
  if (typeof value !== "number") return String(value);
  if (parameter === "window") return `${format.figure(1000 * value)} ms`;
  return parameter === "aggregation" ? `${format.figure(value / 1024)} KiB` : format.figure(value);
}

function nothing() {
  return h(
    "div", { class: "teach" },
    h("p", { class: "lead" }, "Nothing tunes here."),
    h("p", {}, "Settings of I/O nodes are learnt while they serve, for each access pattern, if penstock up is told which:"),
    h("pre", {}, h("code", {}, "penstock up --root DIR --io-nodes 2 --scheduler twins --tune window --mode enforce")),
    h("p", { class: "note" }, "docs/live/tuning.md and docs/live/council.md tell how."),
  );
}

export class Tuner {
  constructor({ model }) {
    this.model = model;
    this.asked = 0;
    this.element = h("div", { class: "tuner" }, h("p", { class: "empty" }, "Asking the controller."));
  }

  show() {
    this.asked = 0;
  }

  async update() {
    const { now } = this.model;
    if (this.model.head === null || now - this.asked < ASK_EVERY) return;
    this.asked = now;
    try {
      const told = await ask("/v1/tuning");
      if (told === null || told.policy === null || told.policy === undefined) this.element.replaceChildren(nothing());
      else this.draw(told);
    } catch (error) {
      if (error.status !== 0) this.element.replaceChildren(h("p", { class: "empty" }, error.message));
    }
  }

  draw(told) {
    const { now } = this.model;
    const facts = [["policy", told.policy], ["applied", told.applied === false ? "no: observed only" : "yes"], ["rounds", format.count(told.rounds)], ["tried out", format.count(told.explored)], ["contexts", Array.isArray(told.contexts) ? format.count(told.contexts.length) : format.count(told.contexts)]];
    const groups = new Map();
    for (const [time, node, parameter, value, tried] of told.history ?? []) {
      const key = `${parameter}\u0000${node}`;
      if (!groups.has(key)) groups.set(key, { parameter, node, chosen: [] });
      groups.get(key).chosen.push([time, worded(parameter, value), tried]);
    }
    const charts = [...groups.values()].sort((a, b) => (a.parameter < b.parameter ? -1 : a.parameter > b.parameter ? 1 : a.node - b.node)).slice(0, CHARTS);
    const key = JSON.stringify([Math.floor(now / 10), told.rounds, told.history?.length, told.arms]);
    if (key === this.key && this.element.querySelector(".facts")) return;
    this.key = key;
    this.element.replaceChildren(
      h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, String(value))))),
      card("Arms over time", { class: "area-arms" }, [h("span", { class: "key" }, h("span", { class: "swatch known" }), "best known"), h("span", { class: "key" }, h("span", { class: "swatch tried" }), "tried out")],
        charts.length > 0 ? h("div", { class: "arm-charts" }, charts.map((each) => this.arm(each, told, now))) : h("p", { class: "empty" }, "No arm was chosen yet: a round needs traffic whose pattern is known.")),
      card("What was learnt", { class: "area-learnt" }, [], this.learnt(told)),
    );
  }

  arm({ parameter, node, chosen }, told, now) {
    const listed = told.parameters?.find(({ name }) => name === parameter)?.values.map((value) => worded(parameter, value)) ?? [];
    const values = [...new Set([...listed, ...chosen.map(([, value]) => value)])];
    const label = `${parameter} of I/O node ${node}: ${chosen.at(-1)[1]} now, ${format.some(chosen.length, "choice")}`;
    return h("figure", {}, h("figcaption", {}, `I/O node ${node}, ${parameter}`), steps(chosen, values, { label, to: now }));
  }

  learnt(told) {
    const arms = told.arms ?? [];
    if (arms.length === 0) return h("p", { class: "empty" }, "Nothing yet.");
    const best = new Map();
    for (const { context, parameter, reward } of arms) {
      const key = `${context}\u0000${parameter}`;
      if (reward !== null) best.set(key, Math.max(best.get(key) ?? -Infinity, reward));
    }
    const rows = arms.map(({ context, parameter, value, chosen, reward }) => {
      const top = best.get(`${context}\u0000${parameter}`);
      const meter = reward === null ? "" : gauge(reward / Math.max(top, 1e-9));
      const leads = reward !== null && reward === top;
      return [context, parameter, worded(parameter, value), { text: format.count(chosen), class: "num" }, { text: format.rate(reward), class: "num" }, meter, leads ? "best so far" : ""];
    });
    const cut = told.left_out > 0 ? h("p", { class: "more" }, `and ${told.left_out} more`) : "";
    const found = table("Arms: what was learnt of each", ["pattern", "parameter", "value", { text: "chosen", class: "num" }, { text: "a busy second moves", class: "num" }, "", ""], rows);
    return h("div", { class: "scrolls learnt", tabindex: 0, role: "region", "aria-label": "What was learnt" }, found, cut);
  }
}
