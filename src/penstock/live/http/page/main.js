// The page: its views, keys, the feed, and the header above every view.

import { storeToken, currentToken } from "./request.js";
import { h, setText } from "./dom.js";
import { toggleTheme } from "./palette.js";
import { Model } from "./model.js";
import * as format from "./format.js";

// Each view is loaded in a task of its own: the first one at once, the others when the page is idle.
const VIEWS = {
  overview: async () => (await import("./overview.js")).Overview,
  job: async () => (await import("./job.js")).JobPage,
  tuner: async () => (await import("./tuner.js")).Tuner,
  "what-if": async () => (await import("./what-if.js")).WhatIf,
};
const TABS = [["overview", "Overview"], ["job", "Job"], ["tuner", "Tuner"], ["what-if", "What-if"]];
// Each figure with its definition: those of now, then those of a longer time.
const FIGURES = [
  ["running", "jobs that run now"],
  ["transferring", "jobs whose phase transfers now"],
  ["waiting", "jobs whose phase waits for a turn now, or would wait if turns were enforced"],
  ["through I/O nodes", "bytes per second now, through all I/O nodes"],
  ["direct", "bytes per second now, without an I/O node"],
  ["of site.bandwidth", "both together, as a part of site.bandwidth"],
  ["time waited", "part of the run time of the jobs shown (running, or ended in the last 15 minutes) in which they waited for turns", "longer"],
  ["turns in total", "turns granted since the controller started", "longer"],
  ["fail-opens in total", "calls let through unmanaged, of all jobs that the store knows", "longer"],
];
const FAIL_OPENS = FIGURES.at(-1)[0];
const find = (id) => document.getElementById(id);

class Page {
  constructor() {
    this.model = new Model();
    const context = { model: this.model, open: (id) => this.go(`job/${encodeURIComponent(id)}`) };
    this.views = {}; // created when first shown
    this.context = context;
    this.lost = null;
    this.denied = false;
    this.session = 0; // counts tokens: answers to an earlier token are dropped
    this.tabs = TABS.map(([name, label], k) => h(
      "button",
      { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "view", onclick: () => this.go(this.last(name)), onkeydown: (event) => this.tabKey(event, k) },
      label, h("kbd", { "aria-hidden": "true" }, String(k + 1)),
    ));
    find("tabs").append(...this.tabs);
    this.figures = new Map(FIGURES.map(([name]) => [name, h("dd", {}, format.NONE)]));
    find("figures").append(...FIGURES.map(([name, title, kind]) => h("div", { title, class: kind }, h("dt", {}, name), this.figures.get(name))));
    this.chips = h("span", {});
    find("chips").append(this.chips);
    addEventListener("hashchange", () => {
      if (location.hash !== this.hash) this.route(); // a link, or the browser's own buttons
    });
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
    this.feed.onmessage = ({ data }) => this.receive(data);
    this.feed.postMessage({ token: currentToken(), session: this.session });
    document.addEventListener("visibilitychange", () => this.feed.postMessage({ hidden: document.hidden }));
    setInterval(() => this.showConnection(), 1000);
  }

  /** Return the target of a tab: that of Job is the job that was last shown. */
  last(name) {
    return name === "job" && this.views.job?.id ? `job/${encodeURIComponent(this.views.job.id)}` : name;
  }

  /** Show a view at once: the key after this one may come before the browser's hashchange. */
  go(where) {
    location.hash = where;
    this.route();
  }

  async route() {
    this.hash = location.hash;
    const [name, ...rest] = location.hash.slice(1).split("/");
    const shown = Object.hasOwn(VIEWS, name) ? name : "overview";
    let argument = rest.join("/");
    try {
      argument = decodeURIComponent(argument);
    } catch {
      argument = ""; // an incomplete link
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
        if (routed === this.routed) this.showLoadError();
        return;
      }
      if (routed !== this.routed) return; // another view was chosen meanwhile
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

  /** Show that a view could not be loaded; the next answer tries again. */
  showLoadError() {
    this.views[this.shown]?.hide?.();
    this.shown = null;
    find("view").replaceChildren(h("p", { class: "empty" }, "This view could not be loaded: the controller does not answer."));
  }

  /** Drop all data, and show empty views. */
  clear() {
    this.model.clear();
    this.views[this.shown]?.hide?.();
    this.views = {};
    this.shown = null;
    find("view").replaceChildren();
    find("forget").hidden = true;
    for (const cell of this.figures.values()) setText(cell, format.NONE);
    this.figures.get(FAIL_OPENS).classList.remove("warn");
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

  /** Open the table of every picture, or close all. */
  tables() {
    const all = [...find("view").querySelectorAll("details.as-table")];
    const open = !all.some((each) => each.open);
    const next = () => {
      const each = all.shift();
      if (each === undefined) return;
      each.open = open;
      requestAnimationFrame(next); // one layout per frame
    };
    next();
  }

  signIn(token) {
    storeToken(token);
    find("token").value = "";
    this.session += 1;
    [this.denied, this.lost] = [false, null];
    this.clear();
    this.showConnection();
    this.feed.postMessage({ token, session: this.session });
  }

  receive(piece) {
    if (piece.session !== this.session) return;
    if (piece.kind === "denied") {
      if (!this.denied) this.clear();
      [this.denied, this.lost] = [true, null];
      this.showConnection();
      if (piece.had) setText(find("token-why"), "This site does not know that token. Tokens are in the file of penstock up's option --token-file.");
      if (!find("token-dialog").open) find("token-dialog").showModal();
      return;
    }
    if (piece.kind === "lost") {
      this.lost = { since: piece.since, why: piece.why };
      this.showConnection();
      return;
    }
    const first = this.model.head === null;
    if (!this.model.take(piece)) return;
    [this.denied, this.lost] = [false, null];
    if (find("token-dialog").open) find("token-dialog").close();
    find("forget").hidden = currentToken() === null;
    this.showConnection();
    this.updateHeader();
    if (first) this.loadOthers();
    if (first || this.shown === null) this.route();
    else this.views[this.shown]?.update();
  }

  /** Load the other views when the page is idle: the controller may become unreachable. */
  loadOthers() {
    const others = Object.values(VIEWS);
    const next = () => others.shift()?.().then(() => requestIdleCallback(next), () => {});
    requestIdleCallback(next);
  }

  showConnection() {
    const box = find("answer");
    const state = this.lost ? "lost" : this.denied ? "denied" : this.model.head === null ? "asking" : "live";
    if (box.dataset.state !== state) box.dataset.state = state;
    document.body.classList.toggle("is-lost", state === "lost");
    if (state === "live") setText(find("answer-text"), `live ${format.at(this.model.now)}`);
    else if (state === "denied") setText(find("answer-text"), "not signed in");
    else if (state === "asking") setText(find("answer-text"), "connecting");
    else {
      const since = this.lost.since;
      const when = since === null ? "No answer yet" : `No answer since ${format.at(since)}, ${format.span(Math.floor(Date.now() / 1000 - since))}`;
      setText(find("answer-text"), `${when}: ${this.lost.why}. Jobs continue; trying again.`);
    }
  }

  updateHeader() {
    const { head } = this.model;
    const counted = this.model.counts();
    const { forwarded, direct } = this.model.rates();
    const waiting = counted.would > 0 ? `${format.count(counted.waiting)} (${format.count(counted.would)} would)` : format.count(counted.waiting);
    const used = head.bandwidth === null ? "not set" : format.share(forwarded === null ? null : (forwarded + direct) / head.bandwidth);
    const values = [
      format.count(counted.running), format.count(counted.transferring), waiting, format.rate(forwarded), format.rate(direct), used,
      format.share(this.model.waitedPart()), format.count(head.turns), format.count(head.fail_opens),
    ];
    FIGURES.forEach(([name], k) => setText(this.figures.get(name), values[k]));
    this.figures.get(FAIL_OPENS).classList.toggle("warn", head.fail_opens > 0);
    const modes = { observe: "observe: no job waits", advise: "advise: no job waits, and jobs report what they would have waited", enforce: "enforce: jobs wait for their turns", off: "off" };
    const fileSystems = head.file_systems ?? [];
    const several = head.scope !== "io-node" && fileSystems.length > 1;
    const per = head.scope === "io-node" ? " per I/O node" : several ? " per file system" : "";
    const chips = [
      [head.site, "site", "this site"],
      [head.policy + per, "policy", `the sharing policy, and what turns are taken on${several ? `: ${fileSystems.join(", ")}` : ""}`],
      [head.kill_switch ? "kill switch on" : head.mode, head.kill_switch ? "alarm" : "mode", head.kill_switch ? "every gate is open" : modes[head.mode] ?? head.mode],
    ];
    if (head.emulated) chips.push(["emulated storage", "emulated", "transfer times are those of an emulated file system"]);
    if (this.model.anonymous) chips.push(["anonymous", "plain", "users and commands are shown with a token"]);
    if (head.policy_failures > 0) chips.push([`${head.policy_failures} policy failures`, "alarm", "the policy raised an exception or returned an invalid result; see the controller's log"]);
    const key = JSON.stringify(chips);
    if (key === this.chipKey) return;
    this.chipKey = key;
    this.chips.replaceChildren(...chips.map(([text, kind, title]) => h("span", { class: `chip ${kind}`, title }, text)));
  }
}

new Page();
