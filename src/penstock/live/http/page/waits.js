// Waiting jobs, grouped by the job that they wait for.

import { h } from "./dom.js";
import * as format from "./format.js";

const [QUEUES, PER_QUEUE] = [8, 6];

/** Return [the job ahead or null, [waiting jobs]], the longest queue first. */
export function queues(model) {
  const byFront = new Map();
  for (const job of model.jobs.values()) {
    if (!model.runs(job) || (job.doing !== "waiting" && job.doing !== "would wait")) continue;
    const front = job.behind?.[0] ?? null;
    if (!byFront.has(front)) byFront.set(front, []);
    byFront.get(front).push(job);
  }
  for (const jobs of byFront.values()) jobs.sort((a, b) => (a.since ?? 0) - (b.since ?? 0));
  return [...byFront.entries()].sort((a, b) => b[1].length - a[1].length);
}

function link(id) {
  return h("a", { href: `#job/${encodeURIComponent(id)}`, class: "job-link", title: id }, id);
}

/** Name the file systems that a job waits for, where there are several. */
function on(job, model) {
  const several = (model.head?.file_systems ?? []).length > 1;
  return several && job.waits_on?.length ? ` on ${job.waits_on.join(", ")}` : "";
}

function waiter(job, model) {
  const { now } = model;
  const would = job.doing === "would wait";
  const more = !would && job.at_most_seconds !== null && job.at_most_seconds !== undefined
    ? `, at most ${format.span(job.at_most_seconds)} more` : "";
  const others = Math.max(0, (job.ahead ?? job.behind?.length ?? 0) - 1);
  return h(
    "li", { class: "waiter" },
    h("span", { class: `swatch ${would ? "would" : "wait"}`, "aria-hidden": "true" }),
    link(job.id),
    h("span", { class: "note" }, `${would ? "would have waited" : "has waited"}${on(job, model)} ${format.span(now - job.since)}${more}${others > 0 ? `, ${others} more ahead of it` : ""}`),
  );
}

export class Waits {
  constructor({ model }) {
    this.model = model;
    this.element = h("div", { class: "waits scrolls", tabindex: 0, role: "region", "aria-label": "Waiting jobs" });
  }

  update() {
    const { model } = this;
    const waitQueues = queues(model);
    const mode = model.head?.mode;
    if (waitQueues.length === 0) {
      const why = model.head?.kill_switch
        ? "The kill switch is on: every gate is open."
        : mode === "enforce" ? "No job waits." : `No job would wait. The mode is ${mode}: no job is made to wait.`;
      this.element.replaceChildren(h("p", { class: "empty" }, why));
      return;
    }
    const parts = waitQueues.slice(0, QUEUES).map(([front, jobs]) => {
      const holder = front === null ? undefined : model.jobs.get(front);
      const does = holder?.doing === "transferring" ? `has transferred (${format.shares(holder)}) for ${format.span(model.now - holder.since)}` : holder?.doing ?? "";
      const title = front === null ? h("span", {}, "other jobs") : link(front);
      return h(
        "div", { class: "queue" },
        h("h3", {}, "behind ", title, h("span", { class: "note" }, does), h("span", { class: "count" }, String(jobs.length))),
        h("ul", {}, jobs.slice(0, PER_QUEUE).map((job) => waiter(job, model)),
          jobs.length > PER_QUEUE ? h("li", { class: "more" }, `and ${jobs.length - PER_QUEUE} more`) : null),
      );
    });
    const rest = waitQueues.slice(QUEUES).reduce((sum, [, jobs]) => sum + jobs.length, 0);
    if (rest > 0) parts.push(h("p", { class: "more" }, `and ${format.some(rest, "job")} behind ${format.count(waitQueues.length - QUEUES)} others`));
    const top = this.element.scrollTop;
    this.element.replaceChildren(...parts);
    this.element.scrollTop = top;
  }
}
