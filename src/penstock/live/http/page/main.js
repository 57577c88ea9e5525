// The page as a whole: which view is shown, keys, the feed, and what stands above every view.

import { keepToken, theToken } from "./ask.js";
import { h, tell } from "./dom.js";
import { JobPage } from "./job.js";
import { toggleTheme } from "./looks.js";
import { Model } from "./model.js";
import { Overview } from "./overview.js";
import { Tuner } from "./tuner.js";
import { WhatIf } from "./what-if.js";
import * as format from "./format.js";

const TABS = [["overview", "Overview"], ["job", "Job"], ["tuner", "Tuner"], ["what-if", "What-if"]];
const FIGURES = ["running", "transferring", "waiting", "through I/O nodes", "past them", "turns", "fail-opens"];
const find = (id) => document.getElementById(id);

class Page {
  constructor() {
    this.model = new Model();
    const context = { model: this.model, open: (id) => this.go(`job/${encodeURIComponent(id)}`) };
    this.views = {}; // made when first looked at: not all in one task
    this.makes = { overview: Overview, job: JobPage, tuner: Tuner, "what-if": WhatIf };
    this.context = context;
    this.lost = null;
    this.tabs = TABS.map(([name, label], k) => h(
      "button",
      { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "view", onclick: () => this.go(this.last(name)), onkeydown: (event) => this.tabKey(event, k) },
      label, h("kbd", { "aria-hidden": "true" }, String(k + 1)),
    ));
    find("tabs").append(...this.tabs);
    this.figures = new Map(FIGURES.map((name) => [name, h("dd", {}, format.NONE)]));
    find("figures").append(...FIGURES.map((name) => h("div", {}, h("dt", {}, name), this.figures.get(name))));
    this.chips = h("span", {});
    find("chips").append(this.chips);
    addEventListener("hashchange", () => this.route());
    document.addEventListener("keydown", (event) => this.key(event));
    find("theme").addEventListener("click", toggleTheme);
    find("help-button").addEventListener("click", () => find("help").showModal());
    find("skip").addEventListener("click", (event) => {
      event.preventDefault();
      find("view").focus();
    });
    find("token-form").addEventListener("submit", () => this.signIn(find("token").value.trim()));
    find("token-dialog").addEventListener("cancel", (event) => event.preventDefault());
    find("forget").addEventListener("click", () => this.signIn(null));
    setTimeout(() => this.route()); // the view is built in a task of its own
    this.feed = new Worker("/assets/feed.js", { type: "module" });
    this.feed.onmessage = ({ data }) => this.hear(data);
    this.feed.postMessage({ token: theToken() });
    document.addEventListener("visibilitychange", () => this.feed.postMessage({ hidden: document.hidden }));
    setInterval(() => this.tellAnswer(), 1000);
  }

  /** Return where a tab leads: to the job that was last looked at. */
  last(name) {
    return name === "job" && this.views.job?.id ? `job/${encodeURIComponent(this.views.job.id)}` : name;
  }

  go(where) {
    if (location.hash === `#${where}`) this.route();
    else location.hash = where;
  }

  route() {
    const [name, ...rest] = location.hash.slice(1).split("/");
    const shown = Object.hasOwn(this.makes, name) ? name : "overview";
    let argument = rest.join("/");
    try {
      argument = decodeURIComponent(argument);
    } catch {
      argument = ""; // a link cut short
    }
    this.tabs.forEach((tab, k) => {
      const chosen = TABS[k][0] === shown;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
    });
    find("view").setAttribute("aria-labelledby", `tab-${shown}`);
    document.title = shown === "job" && argument ? `${argument} \u00b7 Penstock` : `${TABS.find(([each]) => each === shown)[1]} \u00b7 Penstock`;
    this.views[shown] ??= new this.makes[shown](this.context);
    if (this.shown !== shown) {
      this.views[this.shown]?.hide?.();
      this.shown = shown;
      find("view").replaceChildren(this.views[shown].element);
    }
    this.views[shown].show?.(argument);
    this.views[shown].update();
  }

  tabKey(event, k) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = (k + step + TABS.length) % TABS.length;
    this.go(this.last(TABS[next][0]));
    this.tabs[next].focus();
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || document.querySelector("dialog[open]")) return;
    const typing = event.target.closest("input:not([type=checkbox]), select, textarea");
    const overview = this.views.overview;
    if (event.key === "Escape") {
      if (typing) typing.blur();
      else if (this.shown === "job") this.go("overview");
      return;
    }
    if (typing) return;
    const at = TABS[Number(event.key) - 1];
    if (at) this.go(this.last(at[0]));
    else if (event.key === "?") find("help").showModal();
    else if (event.key === "d") toggleTheme();
    else if (event.key === "t") this.tables();
    else if (this.shown === "overview" && event.key === "/") overview.filter.focus();
    else if (this.shown === "overview" && event.key === "l") overview.gantt.rows.element.focus();
    else if (this.shown === "overview" && event.key === "p") overview.togglePause();
    else if (this.shown === "overview" && (event.key === "+" || event.key === "=")) overview.zoom(-1);
    else if (this.shown === "overview" && event.key === "-") overview.zoom(1);
    else return;
    event.preventDefault();
  }

  /** Open every picture's table, or close them all. */
  tables() {
    const all = [...find("view").querySelectorAll("details.as-table")];
    const open = !all.some((each) => each.open);
    const next = () => {
      const each = all.shift();
      if (each === undefined) return;
      each.open = open;
      requestAnimationFrame(next); // each is laid out in a frame of its own
    };
    next();
  }

  signIn(token) {
    keepToken(token);
    find("token").value = "";
    this.feed.postMessage({ token });
  }

  hear(piece) {
    if (piece.kind === "denied") {
      find("forget").hidden = true;
      if (piece.had) tell(find("token-why"), "That token is not known to this site. Tokens are in the file that penstock up was given as --token-file.");
      if (!find("token-dialog").open) find("token-dialog").showModal();
      return;
    }
    if (piece.kind === "lost") {
      this.lost = { since: piece.since, why: piece.why };
      this.tellAnswer();
      return;
    }
    if (!this.model.take(piece)) return;
    this.lost = null;
    if (find("token-dialog").open) find("token-dialog").close();
    find("forget").hidden = theToken() === null;
    this.tellAnswer();
    this.above();
    this.views[this.shown]?.update();
  }

  tellAnswer() {
    const box = find("answer");
    const state = this.lost ? "lost" : this.model.head === null ? "asking" : "live";
    if (box.dataset.state !== state) box.dataset.state = state;
    document.body.classList.toggle("is-lost", state === "lost");
    if (state === "live") tell(find("answer-text"), `live ${format.at(this.model.now)}`);
    else if (state === "lost") {
      const since = this.lost.since;
      const when = since === null ? "No answer yet" : `No answer since ${format.at(since)}, ${format.span(Math.floor(Date.now() / 1000 - since))}`;
      tell(find("answer-text"), `${when}: ${this.lost.why}. Jobs go on; asking again.`);
    }
  }

  above() {
    const { head } = this.model;
    const counted = this.model.counted();
    const { forwarded, direct } = this.model.rates();
    const waiting = counted.would > 0 ? `${format.count(counted.waiting)} (${format.count(counted.would)} would)` : format.count(counted.waiting);
    const values = [format.count(counted.running), format.count(counted.transferring), waiting, format.rate(forwarded), format.rate(direct), format.count(head.turns), format.count(head.fail_opens)];
    FIGURES.forEach((name, k) => tell(this.figures.get(name), values[k]));
    this.figures.get("fail-opens").classList.toggle("warn", head.fail_opens > 0);
    const modes = { observe: "observe: nobody is made to wait", advise: "advise: nobody is made to wait, jobs are told", enforce: "enforce: jobs wait for their turns", off: "off" };
    const chips = [
      [head.site, "site", "this site"],
      [head.policy, "policy", "the sharing policy"],
      [head.kill_switch ? "kill switch on" : head.mode, head.kill_switch ? "alarm" : "mode", head.kill_switch ? "every gate is open" : modes[head.mode] ?? head.mode],
    ];
    if (head.emulated) chips.push(["emulated storage", "emulated", "the time that data takes is that of an emulated file system"]);
    if (this.model.anonymous) chips.push(["anonymous", "plain", "users and commands are told to who has a token"]);
    if (head.policy_failures > 0) chips.push([`${head.policy_failures} policy failures`, "alarm", "the policy raised something, or answered nonsense; the log has it"]);
    const key = JSON.stringify(chips);
    if (key === this.chipKey) return;
    this.chipKey = key;
    this.chips.replaceChildren(...chips.map(([text, kind, title]) => h("span", { class: `chip ${kind}`, title }, text)));
  }
}

new Page();
