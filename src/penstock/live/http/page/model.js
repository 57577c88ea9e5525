// The page's data: what the controller sent, without what is no longer kept.

export const KINDS = { io: 0, wait: 1, "would-wait": 2 };

/** The intervals of one job, `stretches` in the API: [kind, start, end or null, share], by start. */
class Lane {
  constructor() {
    this.stretches = [];
    this.unconfirmed = [];
  }

  add(kind, start, end, share) {
    const list = this.stretches;
    let k = list.length - 1;
    while (k >= 0 && list[k][1] > start) k -= 1;
    for (let same = k; same >= 0 && list[same][1] === start; same -= 1) {
      if (list[same][0] === kind) {
        list[same] = [kind, start, end, share];
        return;
      }
    }
    list.splice(k + 1, 0, [kind, start, end, share]);
  }

  /** Remove intervals that ended before a time, many at once. */
  forget(before) {
    const list = this.stretches;
    const old = ([, , end]) => end !== null && end < before;
    let count = 0;
    for (let k = 0; k < list.length && list[k][1] < before; k += 1) if (old(list[k])) count += 1;
    if (count > 32 || (count > 0 && count === list.length)) this.stretches = list.filter((each) => !old(each));
  }

  /**
   * Close an interval that was open and is no longer sent as open; `last` is when it still was. Its end
   * comes with the next answer if it ended during this one; else it is dropped.
   */
  settle(open, last) {
    const { unconfirmed } = this;
    if (unconfirmed.length > 0) this.stretches = this.stretches.filter((each) => !unconfirmed.includes(each));
    this.unconfirmed = [];
    this.stretches.forEach(([kind, start, end, share], k) => {
      if (end !== null || (open !== undefined && open[0] === kind && open[1] === start)) return;
      this.stretches[k] = [kind, start, Math.max(start, last), share];
      this.unconfirmed.push(this.stretches[k]);
    });
  }
}

/** All data; a `whole` answer is collected in another model, which replaces this one when complete. */
export class Model {
  constructor() {
    this.clear();
  }

  /** Remove all data. */
  clear() {
    this.head = null;
    this.next = null; // the model that takes the present answer
    this.jobs = new Map();
    this.lanes = new Map();
    this.samples = [];
  }

  get now() {
    return this.head?.now ?? Date.now() / 1000;
  }

  get anonymous() {
    return this.head !== null && this.head.users === undefined;
  }

  /** Take a piece of an answer; return whether the answer is complete. */
  take(piece) {
    if (piece.kind === "begin") {
      this.next = piece.head.whole ? new Model() : this;
      this.last = this.now;
      this.next.head = piece.head;
      this.open = new Map(); // every answer has all open intervals
      this.removed = new Set(piece.head.gone ?? []);
      return false;
    }
    const { next } = this;
    if (next === null) return false; // it began with an earlier token
    if (piece.kind === "jobs") {
      for (const job of piece.rows) {
        next.jobs.set(job.id, job);
        this.removed.delete(job.id); // it reconnected
      }
    } else if (piece.kind === "stretches") {
      for (const [job, kind, start, end, share] of piece.rows) {
        let lane = next.lanes.get(job);
        if (lane === undefined) next.lanes.set(job, (lane = new Lane()));
        lane.add(kind, start, end, share);
        if (end === null) this.open.set(job, [kind, start]);
      }
    } else if (piece.kind === "samples") {
      next.samples.push(...piece.rows);
    }
    if (piece.kind !== "end") return false;
    if (next !== this) ({ head: this.head, jobs: this.jobs, lanes: this.lanes, samples: this.samples } = next);
    this.next = null;
    for (const id of this.removed) {
      this.jobs.delete(id);
      this.lanes.delete(id);
    }
    for (const [id, lane] of this.lanes) lane.settle(this.open.get(id), this.last);
    this.prune();
    return true;
  }

  prune() {
    const before = this.now - (this.head.window ?? 900);
    let old = 0;
    while (old < this.samples.length && this.samples[old].time < before) old += 1;
    if (old > 0) this.samples.splice(0, old);
    for (const lane of this.lanes.values()) lane.forget(before);
  }

  /** Return the start of the history; before it, a job without an interval need not have computed. */
  get knownSince() {
    return this.head?.known_since ?? -Infinity;
  }

  stretches(id) {
    return this.lanes.get(id)?.stretches ?? [];
  }

  runs(job) {
    return job.state === "running";
  }

  /** Return the latest rates: through all I/O nodes together, and direct. */
  rates() {
    const last = this.samples.at(-1);
    if (last === undefined) return { forwarded: null, direct: null };
    return { forwarded: last.io_nodes.reduce((sum, value) => sum + (value ?? 0), 0), direct: last.direct };
  }

  /** Return the part of the run time of all jobs in which they waited for turns; null: no time yet. */
  waitedPart() {
    let [waited, seconds] = [0, 0];
    for (const job of this.jobs.values()) {
      waited += job.turn_waited_seconds;
      seconds += (job.ended ?? this.now) - job.began;
    }
    return seconds > 0 ? Math.min(waited / seconds, 1) : null;
  }

  /** Count jobs by state. */
  counts() {
    const counts = { running: 0, transferring: 0, waiting: 0, would: 0, ended: 0 };
    for (const job of this.jobs.values()) {
      if (!this.runs(job)) {
        counts.ended += 1;
        continue;
      }
      counts.running += 1;
      if (job.doing === "transferring") counts.transferring += 1;
      else if (job.doing === "waiting") counts.waiting += 1;
      else if (job.doing === "would wait") counts.would += 1;
    }
    return counts;
  }

  /** Return the ids that match a filter, running jobs first, in an order. */
  ordered(order, filter, ended) {
    const wanted = filter.trim().toLowerCase();
    const fits = (job) =>
      (ended || this.runs(job)) &&
      (wanted === "" || [job.id, job.user, job.name].some((text) => text?.toLowerCase().includes(wanted)));
    const by = ORDERS[order].by;
    return [...this.jobs.values()]
      .filter(fits)
      .sort((a, b) => this.runs(b) - this.runs(a) || by(a, b) || (b.serial ?? 0) - (a.serial ?? 0))
      .map((job) => job.id);
  }
}

const waitsSince = (job) => (job.doing === "waiting" || job.doing === "would wait" ? job.since : Infinity);

/** Orders of lanes; equals come newest first. */
export const ORDERS = {
  newest: { label: "newest first", by: () => 0 },
  oldest: { label: "oldest first", by: (a, b) => (a.serial ?? 0) - (b.serial ?? 0) },
  waiting: { label: "longest wait first", by: (a, b) => (waitsSince(a) < waitsSince(b) ? -1 : waitsSince(a) > waitsSince(b) ? 1 : 0) },
  rate: { label: "fastest first", by: (a, b) => (b.rate ?? 0) - (a.rate ?? 0) },
  name: { label: "by name", by: (a, b) => (a.id < b.id ? -1 : 1) },
};
