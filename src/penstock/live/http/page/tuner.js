// Tuning: the value of each tuned parameter at each I/O node over time, and what was learned.

import { request } from "./request.js";
import { steps } from "./charts.js";
import { card, gauge, h, table } from "./dom.js";
import * as format from "./format.js";

const INTERVAL = 3;
const CHARTS = 16;

/** Return a value of a tuned parameter with its unit. */
function withUnit(parameter, value) {
  if (typeof value !== "number") return String(value);
  if (parameter === "window") return `${format.figure(1000 * value)} ms`;
  return parameter === "aggregation" ? `${format.figure(value / 1024)} KiB` : format.figure(value);
}

function nothing() {
  return h(
    "div", { class: "teach" },
    h("p", { class: "lead" }, "Nothing is tuned."),
    h("p", {}, "Penstock can learn the best settings of I/O nodes while they serve, for each access pattern:"),
    h("pre", {}, h("code", {}, "penstock up --root DIR --io-nodes 2 --scheduler twins --tune window --mode enforce")),
    h("p", { class: "note" }, "See docs/live/tuning.md and docs/live/council.md."),
  );
}

export class Tuner {
  constructor({ model }) {
    this.model = model;
    this.requested = 0;
    this.element = h("div", { class: "tuner" }, h("p", { class: "empty" }, "Loading."));
  }

  show() {
    this.requested = 0;
  }

  async update() {
    const { now } = this.model;
    if (this.model.head === null || now - this.requested < INTERVAL) return;
    this.requested = now;
    try {
      const answer = await request("/v1/tuning");
      if (answer === null || answer.policy === null || answer.policy === undefined) this.element.replaceChildren(nothing());
      else this.draw(answer);
    } catch (error) {
      if (error.status !== 0) this.element.replaceChildren(h("p", { class: "empty" }, error.message));
    }
  }

  draw(answer) {
    const { now } = this.model;
    const facts = [["policy", answer.policy], ["applied", answer.applied === false ? "no, only observed" : "yes"], ["rounds", format.count(answer.rounds)], ["explored", format.count(answer.explored)], ["access patterns", Array.isArray(answer.contexts) ? format.count(answer.contexts.length) : format.count(answer.contexts)]];
    const groups = new Map();
    for (const [time, node, parameter, value, tried] of answer.history ?? []) {
      const key = `${parameter}\u0000${node}`;
      if (!groups.has(key)) groups.set(key, { parameter, node, chosen: [] });
      groups.get(key).chosen.push([time, withUnit(parameter, value), tried]);
    }
    const charts = [...groups.values()].sort((a, b) => (a.parameter < b.parameter ? -1 : a.parameter > b.parameter ? 1 : a.node - b.node)).slice(0, CHARTS);
    const key = JSON.stringify([Math.floor(now / 10), answer.rounds, answer.history?.length, answer.arms, answer.not_shown]);
    if (key === this.key && this.element.querySelector(".facts")) return;
    this.key = key;
    this.element.replaceChildren(
      h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, String(value))))),
      card("Chosen values over time", { class: "area-values" }, [h("span", { class: "key" }, h("span", { class: "swatch known" }), "best known value"), h("span", { class: "key" }, h("span", { class: "swatch tried" }), "explored")],
        charts.length > 0 ? h("div", { class: "value-charts" }, charts.map((each) => this.chart(each, answer, now))) : h("p", { class: "empty" }, "No value was chosen yet: a round needs traffic with a known access pattern.")),
      card("What was learned", { class: "area-learned" }, [], this.learned(answer)),
    );
  }

  chart({ parameter, node, chosen }, answer, now) {
    const listed = answer.parameters?.find(({ name }) => name === parameter)?.values.map((value) => withUnit(parameter, value)) ?? [];
    const values = [...new Set([...listed, ...chosen.map(([, value]) => value)])];
    const label = `${parameter} of I/O node ${node}: ${chosen.at(-1)[1]} now, ${format.some(chosen.length, "choice")}`;
    return h("figure", {}, h("figcaption", {}, `I/O node ${node}, ${parameter}`), steps(chosen, values, { label, to: now }));
  }

  learned(answer) {
    const arms = answer.arms ?? [];
    const notShown = (answer.not_shown ?? []).map((parameter) => h("p", { class: "more" }, `What the tuner of ${parameter} learned cannot be shown; see the controller's log.`));
    if (arms.length === 0) return notShown.length > 0 ? h("div", {}, notShown) : h("p", { class: "empty" }, "Nothing yet.");
    const best = new Map();
    for (const { context, parameter, reward } of arms) {
      const key = `${context}\u0000${parameter}`;
      if (reward !== null) best.set(key, Math.max(best.get(key) ?? -Infinity, reward));
    }
    const rows = arms.map(({ context, parameter, value, chosen, reward }) => {
      const top = best.get(`${context}\u0000${parameter}`);
      const meter = reward === null ? "" : gauge(reward / Math.max(top, 1e-9));
      const leads = reward !== null && reward === top;
      return [context, parameter, withUnit(parameter, value), { text: format.count(chosen), class: "num" }, { text: format.rate(reward), class: "num" }, meter, leads ? "best so far" : ""];
    });
    const cut = answer.left_out > 0 ? h("p", { class: "more" }, `and ${answer.left_out} more`) : "";
    const rewards = table("What was learned of each candidate value", ["access pattern", "parameter", "candidate value", { text: "chosen", class: "num" }, { text: "per busy second", class: "num" }, "", ""], rows);
    return h("div", { class: "scrolls learned", tabindex: 0, role: "region", "aria-label": "What was learned" }, rewards, cut, notShown);
  }
}
