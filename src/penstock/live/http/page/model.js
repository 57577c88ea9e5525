// What the page knows of the site: what the controller told, less what is no longer kept.

export const KINDS = { io: 0, wait: 1, "would-wait": 2 };

const OPEN = new Set(["running"]);

/** What one job did when: stretches [kind, start, end or null, share], by their start. */
class Lane {
  constructor() {
    this.stretches = [];
    this.doubtful = [];
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

  /** Forget what ended before a time, a good part at once. */
  forget(before) {
    const list = this.stretches;
    const old = ([, , end]) => end !== null && end < before;
    let count = 0;
    for (let k = 0; k < list.length && list[k][1] < before; k += 1) if (old(list[k])) count += 1;
    if (count > 32 || (count > 0 && count === list.length)) this.stretches = list.filter((each) => !old(each));
  }

  /**
   * End what was open and is not told as open any more; `last` is when it was. Its end comes with the
   * next answer, if it fell amid this one; if none comes there never was one to tell, and it is dropped.
   */
  settle(told, last) {
    const { doubtful } = this;
    if (doubtful.length > 0) this.stretches = this.stretches.filter((each) => !doubtful.includes(each));
    this.doubtful = [];
    this.stretches.forEach(([kind, start, end, share], k) => {
      if (end !== null || (told !== undefined && told[0] === kind && told[1] === start)) return;
      this.stretches[k] = [kind, start, Math.max(start, last), share];
      this.doubtful.push(this.stretches[k]);
    });
  }
}

/** The whole of it; a whole answer is gathered beside it, and takes its place when it is there. */
export class Model {
  constructor() {
    this.clear();
  }

  /** Know nothing. */
  clear() {
    this.head = null;
    this.next = null; // the model that takes the answer that is under way
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

  /** Take a piece of an answer; return whether an answer is complete with it. */
  take(piece) {
    if (piece.kind === "begin") {
      this.next = piece.head.whole ? new Model() : this;
      this.last = this.now;
      this.next.head = piece.head;
      this.open = new Map(); // every answer has all stretches that go on
      this.gone = new Set(piece.head.gone ?? []);
      return false;
    }
    const { next } = this;
    if (next === null) return false; // its beginning was of somebody else
    if (piece.kind === "jobs") {
      for (const job of piece.rows) {
        next.jobs.set(job.id, job);
        this.gone.delete(job.id); // it came back
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
    for (const id of this.gone) {
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

  /** Return since when it is known what jobs did; before, no stretch does not mean that one computed. */
  get knownSince() {
    return this.head?.known_since ?? -Infinity;
  }

  stretches(id) {
    return this.lanes.get(id)?.stretches ?? [];
  }

  runs(job) {
    return OPEN.has(job.state);
  }

  /** Return the latest rate of all I/O nodes together, and of what went past them. */
  rates() {
    const last = this.samples.at(-1);
    if (last === undefined) return { forwarded: null, direct: null };
    return { forwarded: last.io_nodes.reduce((sum, value) => sum + (value ?? 0), 0), direct: last.direct };
  }

  /** Count jobs by what they do. */
  counted() {
    const found = { running: 0, transferring: 0, waiting: 0, would: 0, ended: 0 };
    for (const job of this.jobs.values()) {
      if (!this.runs(job)) {
        found.ended += 1;
        continue;
      }
      found.running += 1;
      if (job.doing === "transferring") found.transferring += 1;
      else if (job.doing === "waiting") found.waiting += 1;
      else if (job.doing === "would wait") found.would += 1;
    }
    return found;
  }

  /** Return ids that a filter lets through, those that run first, in an order. */
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
