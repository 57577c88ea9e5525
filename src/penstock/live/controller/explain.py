"""One job in plain sentences: what it does now and why, what it did, what it goes through.

Everything is read from a Status, so that a page that is saved can be explained later.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import InputError, unknown
from penstock.live.protocol import messages
from penstock.units import show_bandwidth, show_seconds, show_volume

Record = Mapping[str, Any]

FAIL_OPENS = {
    "failed_open": (
        "calls were done directly because their I/O node could not: it was gone or did not answer"
    ),
    "gave_up": "calls had waited at the gate for a second more than any may (live.max-wait)",
    "interrupted": "calls were done out of turn because somebody interrupted their process",
    "lapses": (
        "phases went on without their turn because the controller was gone, or silent for a lease"
    ),
    "overdue": "phases had waited for their turn for as long as any may (live.max-wait)",
    "policy_failed": (
        "phases went on without their turn because the policy failed: it raised something, or "
        "answered nonsense"
    ),
}
"""Counters of what was let through, and why."""
_LONGER = (
    "Who has the turn keeps it for longer than phases may wait: take a policy that shares, or, "
    "where turns matter more than waits, a longer live.max-wait."
)
AFTER_FAIL_OPENS = {
    "failed_open": "Look at the I/O nodes ('penstock status'): they died, or did not answer.",
    "lapses": "Look at the controller's log: jobs went on without its word.",
    "policy_failed": "Look at the controller's log: it says how the policy failed. Repair it.",
    "overdue": _LONGER,
    "interrupted": "Nothing is wrong: a process that somebody interrupts does not wait on.",
    "gave_up": "Look at 'penstock run': its calls waited for longer than it should have let them.",
}
LETTING = ("observe", "advise")
"""Modes in which nobody waits, and the controller says who would."""
MUCH = 0.2
"""Part of a job's time that is worth advice."""
WORTH_TELLING = 0.05
"""Seconds below which nobody notices a wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What there is to say of a job."""

    job: str
    now: Sequence[str]
    did: Sequence[str]
    through: Sequence[str]
    advice: str | None


def find(jobs: Sequence[Record], name: str) -> Record:
    """Return the job of this id; or of this name, the one that runs before one that ended."""
    for job in jobs:
        if job["id"] == name:
            return job
    named = [job for job in jobs if job.get("name") == name]
    running = [job for job in named if job["state"] == "running"]
    if len(running) > 1:
        ids = ", ".join(job["id"] for job in running)
        raise InputError(f"several running jobs are called {name!r}; name one of {ids}")
    if running or named:
        return (running or named)[-1]
    if not jobs:
        raise InputError(f"there is no job {name!r}: none has run since the controller began")
    raise unknown("job", name, [job["id"] for job in jobs])


def explain(found: messages.Status, name: str) -> Explanation:
    """Return what there is to say of the job of this id, or name."""
    job = find(found.jobs, name)
    return Explanation(
        job=job["id"],
        now=list(_now(job, found)),
        did=list(_did(job)),
        through=list(_through(job, found)),
        advice=_advice(job, found),
    )


def _now(job: Record, found: messages.Status) -> Iterator[str]:
    if job["state"] == "ended":
        how = "well" if job["status"] == 0 else f"with exit status {job['status']}"
        yield f"It ended {how} after {show_seconds(job['seconds'])}."
    elif job["state"] != "running":
        yield (
            f"It is lost: its 'penstock run' went away after {show_seconds(job['seconds'])}. "
            "The command may still run; its gate opens within the lease."
        )
    elif job.get("doing") is None:
        yield "It runs, and takes no part in turns: its 'penstock run' is of an older version."
    else:
        yield from _doing(job)
        yield from _mode(job, found)
    if job.get("weight") is not None:
        yield from _place(job, found)


def _doing(job: Record) -> Iterator[str]:
    since = "" if job["since_seconds"] is None else show_seconds(job["since_seconds"])
    if job["doing"] == "computing":
        yield "It computes: no phase of I/O is under way."
    elif job["doing"] == "transferring":
        yield f"It transfers, since {since}, with {job['share']:.0%} of the file system by right."
    elif job["mode"] == "enforce":
        yield f"It waits for its turn, since {since}, {behind(job)}."
        if job.get("at_most_seconds") is not None:
            most = show_seconds(job["at_most_seconds"])
            yield f"It goes on in {most} at the latest (live.max-wait), turn or none."
    else:
        yield f"It transfers; if turns were enforced, it would wait since {since}, {behind(job)}."


def behind(job: Record) -> str:
    """Return whom a job waits for, in words."""
    ahead = job.get("behind") or []
    if not ahead:
        return "and is the next"
    first = f"for {ahead[0]}"
    others = f", behind {', '.join(ahead[1:4])}" if len(ahead) > 1 else ""
    return first + others + (f" and {len(ahead) - 4} more" if len(ahead) > 4 else "")


def _mode(job: Record, found: messages.Status) -> Iterator[str]:
    whose = "the site's"
    if found.mode != "off" and job.get("user") in found.modes:
        whose = f"{job['user']}'s own"
    means = {
        "enforce": "it waits for its turns",
        "off": "the kill switch is thrown, and nobody waits",
    }
    yield f"Its mode is {job['mode']} ({whose}): {means.get(job['mode'], 'it never waits')}."


def _place(job: Record, found: messages.Status) -> Iterator[str]:
    if job["group"] is None:
        turns = "it takes turns with nobody"
    elif found.policy.startswith("set-"):
        turns = f"it is in set {job['group']}, and takes turns with the jobs of that set"
    else:
        turns = f"it is in group {job['group']!r}, and takes turns with the jobs in it"
    yield f"Under {found.policy} {turns}; its weight is {job['weight']:.3g}."
    if job["w_iter"] is None:
        yield "How long its iterations are (w_iter) is not known: that takes two phases."
        if found.policy.startswith("set-"):
            yield "Until then this is the set of strangers, with their weight."
    elif job.get("iterations"):
        count = job["iterations"]
        seen = f"{count} iteration{'s' if count > 1 else ''} of this run"
        yield f"Its w_iter is {show_seconds(job['w_iter'])}, learnt from {seen}."
    else:
        yield f"Its w_iter is {show_seconds(job['w_iter'])}, from earlier runs of its family."


def _did(job: Record) -> Iterator[str]:
    moved, counters = _moved(job), job.get("counters", {})
    phases = job.get("phases", counters.get("phases", 0))
    yield (
        f"In {show_seconds(job['seconds'])} it moved {show_volume(moved)}: "
        f"{show_volume(counters.get('read_bytes', 0))} read, "
        f"{show_volume(counters.get('write_bytes', 0))} written."
    )
    if phases:
        mean = job.get("phase_bytes")
        each = f", {show_volume(mean)} each on the mean" if mean else ""
        yield f"It had {phases} phase{'s' if phases > 1 else ''}{each}."
    if job.get("bandwidth"):
        yield f"Its best phase reached {show_bandwidth(job['bandwidth'])}."
    said, counted = job.get("turn_waited_seconds"), counters.get("turn_waited", 0) / 1e9
    if waited := said or counted:
        # A job counts no wait but a real one; the controller also those that it would have had.
        really = job.get("mode") == "enforce" or not said
        would = "It waited" if really else "Enforced, it would have waited"
        yield f"{would} for turns for {show_seconds(waited)}, {_part(waited, job):.0%} of its time."
    elif phases and job.get("mode") in LETTING and job.get("doing") != "waiting":
        yield (
            f"It was not made to wait, as nobody is (mode {job['mode']}); enforced, it would not "
            "have waited either."
        )
    if job["waits"]:
        at_gate = show_seconds(job["waited_seconds"])
        yield f"Its calls waited at the gate {job['waits']:,} times, {at_gate} in all threads."
    for counter, why in FAIL_OPENS.items():
        if counters.get(counter):
            yield f"Fail-open: {counters[counter]:,} {why} ({counter})."
    if not job["fail_opens"]:
        yield "No fail-opens."


def _through(job: Record, found: messages.Status) -> Iterator[str]:
    numbers = job["io_nodes"]
    if numbers:
        listed = f"I/O node{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
        yield f"Its data calls go to {listed}; {show_volume(job['forwarded_bytes'])} went so."
    else:
        yield "It has no I/O nodes: its data calls go to the file system directly."
    states = {node["number"]: node for node in found.io_nodes}
    for node in (states[number] for number in numbers if number in states):
        if node["state"] != "serving":
            yield f"I/O node {node['number']} is {node['state']}."
    if job["direct_bytes"] and numbers:
        yield f"{show_volume(job['direct_bytes'])} went past them: {', '.join(_past(job))}."


def _past(job: Record) -> Iterator[str]:
    counters = job.get("counters", {})
    left, failed = counters.get("left_bytes", 0), counters.get("failed_open", 0)
    if left:
        calls = counters.get("left_to_kernel", 0)
        yield (
            f"{show_volume(left)} in {calls:,} calls that are left to the kernel "
            "(copy_file_range, sendfile)"
        )
    if failed:
        yield f"what {failed:,} calls did themselves when an I/O node could not"
    if job["direct_bytes"] > left and not failed:
        yield (
            f"{show_volume(job['direct_bytes'] - left)} in files that no I/O node can serve "
            "(opened to append, or not to be reopened), or while it had none"
        )


def _advice(job: Record, found: messages.Status) -> str | None:
    """Return the one thing that is most worth doing, if there is any."""
    counters = job.get("counters", {})
    for counter, advice in AFTER_FAIL_OPENS.items():
        if counters.get(counter):
            return advice
    if _part(job.get("turn_waited_seconds") or 0.0, job) >= MUCH:
        if job.get("mode") == "enforce" and job["w_iter"] is None and job.get("phases", 0) < 2:
            return "Give it time: its set is that of strangers until its second phase."
        return f"It waits much under {found.policy}: 'penstock compare' shows what others would do."
    if job["direct_bytes"] > _moved(job) / 2 and job["io_nodes"]:
        return (
            "Most of it goes past the I/O nodes: docs/live/client-library.md says which calls do."
        )
    return None


def advised(job: Record, policy: str) -> str:
    """Return what a job that was not made to wait is told of the turns that it would have had."""
    waited, phases = float(job.get("turn_waited_seconds") or 0.0), job.get("phases") or 0
    if not phases:
        return ""
    if waited < WORTH_TELLING:
        return f"under {policy} its {phases} I/O phases would not have waited"
    return (
        f"under {policy} its {phases} I/O phases would have waited {show_seconds(waited)} for "
        f"their turns, and then had the file system to themselves"
    )


def _moved(job: Record) -> int:
    return int(job["forwarded_bytes"]) + int(job["direct_bytes"])


def _part(seconds: float, job: Record) -> float:
    return min(seconds / max(float(job["seconds"]), 1e-9), 1.0)
