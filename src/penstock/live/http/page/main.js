// The page as a whole: which view is shown, keys, the feed, and what stands above every view.

import { keepToken, theToken } from "./ask.js";
import { h, tell } from "./dom.js";
import { toggleTheme } from "./looks.js";
import { Model } from "./model.js";
import * as format from "./format.js";

// Each is loaded in tasks of its own: what is shown at once, the others when the page is at rest.
const VIEWS = {
  overview: async () => (await import("./overview.js")).Overview,
  job: async () => (await import("./job.js")).JobPage,
  tuner: async () => (await import("./tuner.js")).Tuner,
  "what-if": async () => (await import("./what-if.js")).WhatIf,
};
const TABS = [["overview", "Overview"], ["job", "Job"], ["tuner", "Tuner"], ["what-if", "What-if"]];
const FIGURES = ["running", "transferring", "waiting", "through I/O nodes", "past them", "turns", "fail-opens"];
const find = (id) => document.getElementById(id);

class Page {
  constructor() {
    this.model = new Model();
    const context = { model: this.model, open: (id) => this.go(`job/${encodeURIComponent(id)}`) };
    this.views = {}; // made when first looked at: not all in one task
    this.context = context;
    this.lost = null;
    this.denied = false;
    this.asker = 0; // counts tokens: what was asked with an earlier one is not for who is here now
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
    this.route();
    this.feed = new Worker("/assets/feed.js", { type: "module" });
    this.feed.onmessage = ({ data }) => this.hear(data);
    this.feed.postMessage({ token: theToken(), asker: this.asker });
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

  async route() {
    const [name, ...rest] = location.hash.slice(1).split("/");
    const shown = Object.hasOwn(VIEWS, name) ? name : "overview";
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
    const routed = (this.routed = Symbol(shown));
    if (this.views[shown] === undefined) {
      let View;
      try {
        View = await VIEWS[shown]();
      } catch {
        if (routed === this.routed) this.unloaded();
        return;
      }
      if (routed !== this.routed) return; // somebody went elsewhere meanwhile
      this.views[shown] = new View(this.context);
    }
    if (this.shown !== shown) {
      this.views[this.shown]?.hide?.();
      this.shown = shown;
      find("view").replaceChildren(this.views[shown].element);
    }
    this.views[shown].show?.(argument);
    this.views[shown].update();
  }

  /** Say that a view could not be loaded; it is tried again with the next answer. */
  unloaded() {
    this.views[this.shown]?.hide?.();
    this.shown = null;
    find("view").replaceChildren(h("p", { class: "empty" }, "This view could not be loaded: the controller does not answer."));
  }

  /** Forget what was told, and show views that know nothing. */
  forget() {
    this.model.clear();
    this.views[this.shown]?.hide?.();
    this.views = {};
    this.shown = null;
    find("view").replaceChildren();
    find("forget").hidden = true;
    for (const cell of this.figures.values()) tell(cell, format.NONE);
    this.figures.get("fail-opens").classList.remove("warn");
    this.chips.replaceChildren();
    this.chipKey = null;
    this.route();
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
    this.asker += 1;
    [this.denied, this.lost] = [false, null];
    this.forget();
    this.tellAnswer();
    this.feed.postMessage({ token, asker: this.asker });
  }

  hear(piece) {
    if (piece.asker !== this.asker) return;
    if (piece.kind === "denied") {
      if (!this.denied) this.forget();
      [this.denied, this.lost] = [true, null];
      this.tellAnswer();
      if (piece.had) tell(find("token-why"), "That token is not known to this site. Tokens are in the file that penstock up was given as --token-file.");
      if (!find("token-dialog").open) find("token-dialog").showModal();
      return;
    }
    if (piece.kind === "lost") {
      this.lost = { since: piece.since, why: piece.why };
      this.tellAnswer();
      return;
    }
    const first = this.model.head === null;
    if (!this.model.take(piece)) return;
    [this.denied, this.lost] = [false, null];
    if (find("token-dialog").open) find("token-dialog").close();
    find("forget").hidden = theToken() === null;
    this.tellAnswer();
    this.above();
    if (first) this.loadOthers();
    if (first || this.shown === null) this.route();
    else this.views[this.shown]?.update();
  }

  /** Load the other views, one after the other when there is nothing else to do: the controller may go away. */
  loadOthers() {
    const others = Object.values(VIEWS);
    const next = () => others.shift()?.().then(() => requestIdleCallback(next), () => {});
    requestIdleCallback(next);
  }

  tellAnswer() {
    const box = find("answer");
    const state = this.lost ? "lost" : this.denied ? "denied" : this.model.head === null ? "asking" : "live";
    if (box.dataset.state !== state) box.dataset.state = state;
    document.body.classList.toggle("is-lost", state === "lost");
    if (state === "live") tell(find("answer-text"), `live ${format.at(this.model.now)}`);
    else if (state === "denied") tell(find("answer-text"), "not signed in");
    else if (state === "asking") tell(find("answer-text"), "asking the controller");
    else {
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
