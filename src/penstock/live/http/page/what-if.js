// What-if: a record of this site, simulated under two policies, side by side: sharing
// policies, or allocation or placement policies under the sharing policy that ran.

import { request } from "./request.js";
import { card, h, setText } from "./dom.js";
import { Comparison } from "./comparison.js";
import * as format from "./format.js";

const INTERVAL = 400;
const DAY = 86400;
const KINDS = [["sharing", "sharing policies"], ["allocation", "allocation policies"], ["placement", "placement policies"]];
const OWN = "own"; // jobs keep the I/O nodes that they had
const OTHERS = {
  sharing: ["set-10", "fair-share"],
  allocation: ["mckp", "where-known", OWN],
  placement: ["greedy-non-clairvoyant", "random"],
};

/** Return the choices: each run as a whole, and its days if there are several. */
export function choices(records) {
  return records.flatMap((record) => {
    const long = record.ended === null ? "still being written" : format.span(record.ended - record.began);
    const describe = (bytes) => [record.policy ?? "no policy", record.mode, format.size(bytes)].filter(Boolean).join(", ");
    const whole = { run: record.run, day: null, record, label: `${format.date(record.began)}, ${long}, ${describe(record.bytes)}` };
    const days = record.days ?? [];
    if (days.length < 2) return [{ ...whole, covers: days[0]?.day ?? null }];
    return [whole, ...days.map(({ day, bytes }) => ({ run: record.run, day, record, covers: day, label: `  ${day}, ${describe(bytes)}` }))];
  });
}

/** Return yesterday's record, or else the newest. */
export function preferred(options, now) {
  const yesterday = new Date(1000 * (now - DAY)).toISOString().slice(0, 10);
  return options.find(({ covers }) => covers === yesterday) ?? options[0];
}

/** Return which policy of a kind acted on a record; null: none, or it is not known. */
export function acted(kind, { policy, mode, allocation, placement } = {}) {
  const enforced = [null, undefined, "enforce"].includes(mode);
  // Nobody waits in other modes than enforce, and jobs may use all I/O nodes: what ran is fair-share, and own.
  if (kind === "sharing") return enforced ? policy : "fair-share";
  if (kind === "allocation") return (enforced && allocation) || OWN;
  return (enforced && allocation && placement) || null;
}

export class WhatIf {
  constructor({ model }) {
    this.model = model;
    this.id = null;
    this.timer = 0;
    this.record = h("select", { id: "record", onchange: () => this.preselect() });
    this.kind = h("select", { id: "kind", onchange: () => this.preselect() }, KINDS.map(([name, label]) => h("option", { value: name }, label)));
    this.allocation = h("select", { id: "with-allocation" });
    this.first = h("select", { id: "first" });
    this.second = h("select", { id: "second" });
    this.window = h("input", { id: "window", type: "text", placeholder: "all, or 9 h:17 h", size: 16, title: "A window of the record, from its beginning: 9 h:17 h" });
    this.run = h("button", { type: "submit", class: "primary", disabled: true }, "Simulate both");
    this.cancel = h("button", { type: "button", disabled: true, onclick: () => this.stop() }, "Cancel");
    this.state = h("p", { class: "what-state", role: "status" });
    const field = (id, label, control) => h("div", { class: "field" }, h("label", { for: id }, label), control);
    this.pair = field("with-allocation", "With allocation", this.allocation);
    this.form = h(
      "form", { class: "what-form", onsubmit: (event) => this.start(event) },
      field("record", "Record", this.record), field("kind", "Compare", this.kind), this.pair,
      field("first", "Policy", this.first),
      field("second", "Other policy", this.second), field("window", "Window", this.window), this.run, this.cancel,
    );
    this.result = h("div", { class: "what-result" });
    this.element = h(
      "div", { class: "what" },
      card("What would other policies have done?", {}, [], h("p", { class: "note" }, "The record of this site's jobs is simulated under both policies, at the lowest priority; allocation and placement policies under the sharing policy that ran. Nothing on the site changes."), this.form, this.state),
      this.result,
    );
  }

  async show(id) {
    if (this.model.head === null) return; // shown again with the first answer
    await this.load(); // there may be new records
    if (id && id !== this.id) {
      this.id = id;
      this.poll();
    }
  }

  hide() {
    clearTimeout(this.timer);
    this.timer = 0;
  }

  update() {
    if (!this.records?.length) this.load(); // the first record is on disk a second after its job began
    if (this.running && this.id !== null && this.timer === 0) this.poll();
  }

  async load() {
    if (this.model.head === null || this.loading || this.running) return;
    this.loading = true;
    const before = this.choices?.[Number(this.record.value)];
    const selects = [this.allocation, this.first, this.second];
    const policies = selects.map(({ value }) => value);
    try {
      const [records, known] = await Promise.all([request("/v1/records"), request("/v1/policies")]);
      this.records = records;
      this.policies = known;
      this.choices = choices(records);
      const chosen = this.choices.find(({ run, day }) => run === before?.run && day === before.day) ?? preferred(this.choices, this.model.now);
      this.record.replaceChildren(...this.choices.map((each, k) => h("option", { value: k, selected: each === chosen }, each.label)));
      this.preselect();
      if (before !== undefined) for (const [k, select] of selects.entries()) select.value = policies[k];
      this.run.disabled = records.length === 0;
      if (this.state.textContent.startsWith("There is no record")) setText(this.state, "");
      if (records.length === 0) setText(this.state, "There is no record yet: the first job of this site starts one.");
    } catch (error) {
      setText(this.state, `${error.message}. ${error.hint ?? ""}`);
    }
    this.loading = false;
  }

  /** List the policies of the kind, and choose the one that ran, and another one. */
  preselect() {
    const { record } = this.choices?.[Number(this.record.value)] ?? {};
    const kind = this.kind.value;
    const list = (select, of) => {
      const policies = (this.policies ?? []).filter((each) => each.kind === of);
      const title = ({ summary, needs }) => `${summary} It must know: ${needs.join(", ") || "nothing"}.`;
      select.replaceChildren(...policies.map((each) => h("option", { value: each.name, title: title(each) }, each.name)));
      return policies.map(({ name }) => name);
    };
    const names = list(this.first, kind);
    list(this.second, kind);
    const ran = acted(kind, record);
    const first = names.includes(ran) ? ran : OTHERS[kind].find((name) => names.includes(name)) ?? names[0];
    this.first.value = first ?? "";
    this.second.value = [...OTHERS[kind], ...names].find((name) => name !== first && names.includes(name)) ?? "";
    this.pair.hidden = kind !== "placement";
    // Placement policies need to be told how many I/O nodes each job gets.
    const allocations = list(this.allocation, "allocation").filter((name) => name !== OWN);
    this.allocation.querySelector(`option[value=${OWN}]`)?.remove();
    const given = acted("allocation", record);
    this.allocation.value = (allocations.includes(given) ? given : ["one", ...allocations].find((name) => allocations.includes(name))) ?? "";
  }

  /** Return the policies of a request, by kind. */
  chosen() {
    const both = [this.first.value, this.second.value];
    if (this.kind.value === "sharing") return { policies: both };
    return this.kind.value === "allocation" ? { allocation: both } : { allocation: [this.allocation.value], placement: both };
  }

  async start(event) {
    event.preventDefault();
    if (this.running) return;
    if (this.first.value === this.second.value) {
      setText(this.state, "Choose two different policies.");
      this.second.focus();
      return;
    }
    this.id = null; // not known before the answer: nothing to ask about or to cancel
    this.busy(true);
    setText(this.state, "Starting the simulation.");
    this.result.replaceChildren();
    try {
      const { run, day } = this.choices[Number(this.record.value)];
      const body = { run, day, ...this.chosen(), window: this.window.value.trim() || null };
      const { id } = await request("/v1/what-if", { method: "POST", body });
      this.id = id;
      this.busy(true);
      history.replaceState(null, "", `#what-if/${encodeURIComponent(id)}`);
      this.poll();
    } catch (error) {
      this.busy(false);
      // What was typed is wrong: the guide of the API is no help.
      setText(this.state, error.status === 422 ? `${error.message}.` : `${error.message}. ${error.hint ?? ""}`);
      if (error.status === 422) this.window.focus();
    }
  }

  async stop() {
    this.cancel.disabled = true;
    try {
      await request(`/v1/what-if/${encodeURIComponent(this.id)}`, { method: "DELETE" });
      this.poll();
    } catch (error) {
      setText(this.state, `${error.message}. ${error.hint ?? ""}`);
    }
  }

  busy(running) {
    this.running = running;
    this.run.disabled = running || !this.records?.length;
    this.cancel.disabled = !running || this.id === null;
    this.form.setAttribute("aria-busy", String(running));
  }

  async poll() {
    clearTimeout(this.timer);
    this.timer = 0;
    const { id } = this;
    let answer;
    try {
      answer = await request(`/v1/what-if/${encodeURIComponent(id)}`);
    } catch (error) {
      if (id !== this.id) return;
      if (error.status === 0 && this.running) this.later();
      else {
        this.busy(false);
        setText(this.state, error.status === 404 ? "That simulation is no longer kept. Run it again." : `${error.message}. ${error.hint}`);
      }
      return;
    }
    if (id !== this.id) return;
    this.busy(answer.state === "running");
    if (answer.state === "running") {
      const [of] = [answer.policies, answer.placement, answer.allocation].filter((names) => names?.length);
      setText(this.state, `Simulating ${of.join(" and ")}, ${format.span(answer.seconds)} so far.`);
      this.later();
    } else if (answer.state === "done") {
      setText(this.state, `Simulated in ${format.span(answer.seconds)}.`);
      this.result.replaceChildren(new Comparison(answer).element);
    } else if (answer.state === "cancelled") setText(this.state, "Cancelled. Nothing was changed.");
    else setText(this.state, `It failed: ${answer.error ?? "no reason given"}`);
  }

  later() {
    if (this.element.isConnected) this.timer = setTimeout(() => this.poll(), INTERVAL);
  }
}
