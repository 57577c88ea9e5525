// The jobs and users with the highest rates.

import { h, table } from "./dom.js";
import * as format from "./format.js";

const MOST = 8;

/** Return the n largest by a measure, without sorting all. */
export function largest(items, n, measure) {
  const entries = [];
  for (const item of items) {
    const value = measure(item);
    if (!(value > 0)) continue;
    let k = entries.length;
    while (k > 0 && entries[k - 1][0] < value) k -= 1;
    if (k >= n) continue;
    entries.splice(k, 0, [value, item]);
    if (entries.length > n) entries.pop();
  }
  return entries.map(([, item]) => item);
}

const num = (text) => ({ text, class: "num" });

export class Top {
  constructor({ model }) {
    this.model = model;
    this.jobs = h("div", { class: "top-jobs" });
    this.users = h("div", { class: "top-users" });
    this.element = h("div", { class: "top scrolls", tabindex: 0, role: "region", "aria-label": "Top jobs and users" }, this.jobs, this.users);
  }

  update() {
    const { model } = this;
    const now = largest(model.jobs.values(), MOST, (job) => (model.runs(job) ? job.rate : 0));
    const total = (job) => job.forwarded_bytes + job.direct_bytes;
    const jobs = now.length > 0 ? now : largest(model.jobs.values(), MOST, total);
    const row = (job) => [
      h("a", { href: `#job/${encodeURIComponent(job.id)}`, class: "job-link", title: job.id }, job.id),
      num(format.rate(job.rate)), num(format.size(total(job))), num(format.span(job.waited_seconds)),
    ];
    const heads = (first) => [first, num("rate"), num("moved"), num("waited")];
    this.jobs.replaceChildren(
      jobs.length > 0
        ? table(now.length > 0 ? "Jobs with the highest rates" : "Jobs that moved most", heads("job"), jobs.map(row))
        : h("p", { class: "empty" }, "No job has moved any data yet."),
    );
    if (model.anonymous) {
      this.users.replaceChildren(h("p", { class: "empty" }, "Users are shown with a token (penstock up --token-file)."));
      return;
    }
    const users = largest(model.head?.users ?? [], MOST, (user) => 1 + user.rate);
    const line = (user) => [
      { text: user.user, title: format.some(user.jobs, "job") },
      num(format.rate(user.rate)), num(format.size(user.forwarded_bytes + user.direct_bytes)), num(format.span(user.waited_seconds)),
    ];
    this.users.replaceChildren(users.length > 0 ? table("Users with the highest rates", heads("user"), users.map(line)) : "");
  }
}
