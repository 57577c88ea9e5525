"""One job in plain sentences: what it does now and why, what it did so far, where its data goes.

Everything is read from a Status, so that a saved status can be explained later.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import InputError, unknown
from penstock.live.controller import explain_allocation, explain_policy
from penstock.live.protocol import messages
from penstock.live.protocol.job_record import JobRecord
from penstock.units import show_bandwidth, show_count, show_seconds, show_volume

FAIL_OPENS = {
    "failed_open": ("call", "went direct because the I/O node was gone or did not answer"),
    "gave_up": ("call", "waited at the gate for a second longer than live.max-wait allows"),
    "interrupted": ("call", "went on out of turn because a signal interrupted the process"),
    "lapses": (
        "phase",
        "went on without a turn because the controller was gone, or silent for a lease",
    ),
    "overdue": ("phase", "had waited for a turn for as long as live.max-wait allows"),
    "policy_failed": (
        "phase",
        "went on without a turn because the policy failed: it raised an exception, or returned an "
        "invalid value",
    ),
}
"""Counters of what was let through: what each counts, and why it was."""
AFTER_FAIL_OPENS = {
    "failed_open": "Check the I/O nodes ('penstock status'): they died, or did not answer.",
    "lapses": "See the controller's log: jobs went on without hearing from it.",
    "policy_failed": "Repair the policy: the controller's log says how it failed.",
    "overdue": (
        "The job with the turn keeps it for longer than phases may wait: choose a policy that "
        "shares, or, where turns matter more than waits, a longer live.max-wait."
    ),
    "interrupted": "Nothing is wrong: an interrupted process stops waiting.",
    "gave_up": "See the log of 'penstock run': it should have ended these waits earlier.",
}
UNENFORCED = ("observe", "advise")
"""Modes in which no job waits, and the controller says which would."""
MUCH = 0.2
"""Part of a job's time beyond which a wait is worth advice."""
DIFFERENCE = 0.1
"""Difference of two shares that is worth an explanation."""
NOTICEABLE = 0.05
"""Seconds below which a wait is not worth mentioning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A job, explained."""

    job: str
    now: Sequence[str]
    did: Sequence[str]
    through: Sequence[str]
    advice: str | None


def find(jobs: Sequence[JobRecord], name: str) -> JobRecord:
    """Return the job with this id, or name; of one name, a running job before one that ended."""
    for job in jobs:
        if job.id == name:
            return job
    matches = [job for job in jobs if job.name == name]
    running = [job for job in matches if job.state == "running"]
    if len(running) > 1:
        ids = ", ".join(job.id for job in running)
        raise InputError(f"several running jobs are called {name!r}; name one of {ids}")
    if running or matches:
        return (running or matches)[-1]
    if runs := [job.id for job in jobs if job.executable == name]:
        listed = ", ".join(runs[-8:])
        raise InputError(f"{name!r} is an application; name one of its jobs: {listed}")
    if not jobs:
        raise InputError(f"there is no job {name!r}: none has run since the controller began")
    raise unknown("job", name, [job.id for job in jobs])


def explain(status: messages.Status, name: str) -> Explanation:
    """Explain the job with this id or name."""
    job = find(status.jobs, name)
    return Explanation(
        job=job.id,
        now=list(_now(job, status)),
        did=[*_did(job), *explain_policy.past_place(job, status), *_why_zero(job, status)],
        through=list(_through(job, status)),
        advice=_advice(job, status),
    )


def _now(job: JobRecord, status: messages.Status) -> Iterator[str]:
    if job.state == "ended":
        yield f"It ended (exit status {job.status}) after {show_seconds(job.seconds)}."
    elif job.state != "running":
        yield (
            f"It is lost: its 'penstock run' went away after {show_seconds(job.seconds)}. "
            "The command may still run; its gate opens within the lease."
        )
    elif job.doing is None:
        yield "It runs, and takes no part in turns: its 'penstock run' is of an older version."
    else:
        yield from _doing(job, status)
        yield from _shares(job, status)
        yield from explain_policy.mode(job, status)
        if job.mode != "off":
            yield from explain_policy.place(job, status, enforced=job.mode == "enforce")


def _doing(job: JobRecord, status: messages.Status) -> Iterator[str]:
    since = "" if job.since_seconds is None else show_seconds(job.since_seconds)
    if job.doing == "computing":
        yield "It computes: no I/O phase is in progress."
    elif job.doing == "transferring":
        turn = ", without a turn" if job.out_of_turn else ""
        if job.mode == "enforce":
            shares = f"; its share is {job.share:.0%} granted{_received(job)}"
        else:
            shares = f"{_received(job)}; if turns were enforced, its share would be {job.share:.0%}"
        yield f"It has been transferring for {since}{turn}{shares}."
        if job.waits_on:
            would = "" if job.mode == "enforce" else "would "
            yield (
                f"On {_listed(job.waits_on)} it {would}wait{'' if would else 's'} for its turn, "
                f"{behind(job.behind, job.ahead)}; its calls on its other file systems go on."
            )
    elif job.mode == "enforce":
        yield (
            f"It has been waiting for its turn{_on_some(job, status)} for {since}, "
            f"{behind(job.behind, job.ahead)}."
        )
        if job.at_most_seconds is not None:
            most = show_seconds(job.at_most_seconds)
            yield (
                f"It goes on in {most} at the latest, with or without its turn: live.max-wait "
                "counts from the beginning of its phase."
            )
    else:
        yield (
            f"It transfers; if turns were enforced, it would have been waiting"
            f"{_on_some(job, status)} for {since}, {behind(job.behind, job.ahead)}{_received(job)}."
        )


def _on_some(job: JobRecord, status: messages.Status) -> str:
    """Say on which file systems a job waits, where there are several."""
    named = job.waits_on and len(status.file_systems) > 1
    return f" on {_listed(job.waits_on)}" if named else ""


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _received(job: JobRecord) -> str:
    if job.received is None:
        return ""
    return f", {job.received:.0%} received (of the bytes that all jobs moved meanwhile)"


def _shares(job: JobRecord, status: messages.Status) -> Iterator[str]:
    """Say why a job receives another share than it is granted, where that is known."""
    if not job.share or job.received is None or abs(job.received - job.share) < DIFFERENCE:
        return
    if job.mode != "enforce":
        yield f"Shares are not enforced in mode {job.mode}."
        return
    others = [
        other for other in status.jobs if other.id != job.id and other.doing == "transferring"
    ]
    used = set(job.io_nodes_used)
    if used and others and not any(used & set(other.io_nodes_used) for other in others):
        yield (
            "Weights act among jobs that use the same I/O node, and no other transferring job "
            f"uses {explain_allocation.named(sorted(used))}."
        )
    elif used and job.counters.get("concurrent_calls", 2) <= 1:
        queued = sum(node.queued or 0 for node in status.io_nodes if node.number in used)
        yield (
            "Weights order the requests that wait at an I/O node. It makes one call at a time"
            + ("" if queued else ", and none waits there now")
            + ": weights cannot hold it to its share."
        )


def behind(ahead: Sequence[str], count: int = 0) -> str:
    """Return the jobs that a job waits for, in words; `count` says how many if it names fewer."""
    count = max(count, len(ahead))
    if not ahead:
        return "and is the next"
    first = f"for {ahead[0]}"
    others = f", behind {', '.join(ahead[1:4])}" if len(ahead) > 1 else ""
    return first + others + (f" and {count - 4} more" if count > 4 else "")


def _suspicious(counters: Mapping[str, int]) -> Iterator[str]:
    """Yield what is wrong with what was said of a job, or to it."""
    if implausible := counters.get("implausible", 0):
        yield (
            f"It wrote impossible values into {show_count(implausible, 'counter')} of its own: its "
            "figures say nothing."
        )
    if tampered := counters.get("tampered", 0):
        yield (
            f"{show_count(tampered, 'message')} of the controller to it came changed: the "
            "connections ended, and were made again."
        )


def _did(job: JobRecord) -> Iterator[str]:
    counters = job.counters
    left = counters.get("left_bytes", 0)
    kernel = f", {show_volume(left)} copied in the kernel" if left else ""
    yield (
        f"In {show_seconds(job.seconds)} it moved {show_volume(job.moved_bytes)}: "
        f"{show_volume(counters.get('read_bytes', 0))} read, "
        f"{show_volume(counters.get('write_bytes', 0))} written{kernel}."
    )
    yield from _suspicious(counters)
    if job.reconnected is not None:
        after = show_seconds(max(job.reconnected - job.began, 0.0))
        yield (
            f"It reconnected to a new controller after {after}: phases and waits for turns are "
            "counted from then on."
        )
    if job.phases:
        each = " each on average" if job.phases > 1 else ""
        mean = f", {show_volume(job.phase_bytes)}{each}" if job.phase_bytes else ""
        yield f"It had {show_count(job.phases, 'phase')}{mean}{_by_mode(job)}."
    # The phases of a job on several hosts are of all of them, its counters of one.
    if job.state == "running" and job.nodes == 1 and _in_phases(job) > job.moved_bytes:
        yield (
            f"Its phases moved {show_volume(_in_phases(job))}: a phase is reported when it ends, "
            "the other counts once per second."
        )
    if job.best_bandwidth:
        yield f"Its best phase reached {show_bandwidth(job.best_bandwidth)}."
    waits, without = job.doing == "waiting", ", without its present wait"
    # A job counts its own waits, too: the controller does not know those of an earlier one.
    if waited := job.turn_waited_seconds or counters.get("turn_waited", 0) / 1e9:
        # The present wait is in it, unless the mode changed during it.
        lacks = waits and job.mode == "enforce" and waited < (job.since_seconds or 0.0)
        yield f"It waited for turns for {_with_part(waited, job)}{without if lacks else ''}."
    observed = [mode for mode in UNENFORCED if job.phases_by_mode.get(mode)]
    if would := job.would_have_waited_seconds:
        lacks = waits and job.mode != "enforce"
        wait = _with_part(would, job) + (without if lacks else "")
        yield f"Enforced, it would have waited for turns for {wait}."
    elif observed and not waits:
        yield (
            f"It was not made to wait in mode {' or '.join(observed)}; enforced, it would not "
            "have waited either."
        )
    if job.waits:
        times, at_gate = show_count(job.waits, "time"), show_seconds(job.waited_seconds)
        yield f"Its calls waited at the gate {times}, {at_gate} over all threads."
    for counter, (noun, why) in FAIL_OPENS.items():
        if count := counters.get(counter):
            yield f"Fail-open: {show_count(count, noun)} {why} ({counter})."
    if not job.fail_opens:
        yield "No fail-opens."


def _in_phases(job: JobRecord) -> float:
    return job.phases * (job.phase_bytes or 0.0)


def _by_mode(job: JobRecord) -> str:
    counts = {mode: count for mode, count in job.phases_by_mode.items() if count}
    if len(counts) == 1:
        return f"; {'all ' if job.phases > 1 else ''}in mode {next(iter(counts))}"
    separator = "; " if counts else ""
    return separator + ", ".join(f"{count:,} in mode {mode}" for mode, count in counts.items())


def _why_zero(job: JobRecord, status: messages.Status) -> Iterator[str]:
    roots = " or ".join(status.roots) or "the managed directories"
    match job.zero_bytes_reason:
        case "not attached":
            yield (
                "No process of it loaded the client library: its program is statically linked, or "
                "is a 32-bit one, or its environment was cleared (env -i), or it has other "
                "privileges than its caller, or PENSTOCK_DISABLE=1 is set."
            )
        case "wrote elsewhere":
            files = show_count(job.counters.get("opens_elsewhere", 0), "file")
            paths = ", ".join(status.directories.get(job.id, []))
            where = f", in {paths}" if paths else ""
            yield f"It opened {files} for writing outside {roots}{where}."
        case "no file opened":
            yield (
                f"The client library saw it open no file below {roots}, and none for writing "
                "elsewhere: it did no I/O, or its program is statically linked or written in Go."
            )
        case "no data call":
            files = show_count(job.counters.get("opens", 0), "file")
            yield (
                f"It opened {files} below {roots}, and no read or write was seen: it moved "
                "nothing, or uses mmap or io_uring."
            )


def _through(job: JobRecord, status: messages.Status) -> Iterator[str]:
    yield from explain_allocation.allocation(job, status)
    if job.bytes_by_file_system and len(status.file_systems) > 1:
        moved_on = job.bytes_by_file_system.items()
        parts = [f"{show_volume(size)} on {name}" for name, size in moved_on]
        yield f"It moved {', '.join(parts)}."
    numbers = job.io_nodes
    if numbers:
        verb = "may use" if job.state == "running" else "was allowed"
        yield f"It {verb} {explain_allocation.named(numbers)}."
    if job.bytes_by_io_node:
        moved = sorted((int(number), size) for number, size in job.bytes_by_io_node.items())
        parts = [f"{show_volume(size)} through I/O node {number}" for number, size in moved]
        yield f"It moved {', '.join(parts)}."
    elif job.forwarded_bytes:
        yield f"I/O nodes decided about {show_volume(job.forwarded_bytes)} of its data."
    elif numbers:
        yield "No I/O node has moved any of its data."
    else:
        have, go = ("has", "go") if job.state == "running" else ("had", "went")
        yield f"It {have} no I/O nodes: its data calls {go} to the file system directly."
    unreachable = job.allocation is not None and job.allocation.reason == "unreachable"
    if job.pinned is None and not unreachable and (why := explain_allocation.barred(job, status)):
        yield f"{why}."
    yield from _permission(job, status)
    states = {node.number: node.state for node in status.io_nodes}
    for number in numbers:
        if states.get(number, "serving") != "serving":
            yield f"I/O node {number} is {states[number]}."
    if job.direct_bytes and (numbers or job.forwarded_bytes):
        yield f"{show_volume(job.direct_bytes)} went direct: {', '.join(_direct(job))}."


def _permission(job: JobRecord, status: messages.Status) -> Iterator[str]:
    """How they decided: by credits, call by call, or by making the calls."""
    if job.carried_bytes:
        carried = show_volume(job.carried_bytes)
        if status.emulated:
            yield (
                f"I/O nodes carried {carried} of that: the site is emulated, and they stand for "
                "I/O nodes of other hosts."
            )
        else:
            yield f"I/O nodes of other hosts carried {carried} of that."
    questions, counters = job.counters.get("questions", 0), job.counters
    if not questions:
        return
    syncs = counters.get("syncs", 0)
    calls = counters.get("forwarded_reads", 0) + counters.get("forwarded_writes", 0) + syncs
    counts = f"{show_count(questions, 'time')} for {show_count(calls, 'call')}"
    over = job.state != "running"
    used = job.io_nodes_used or job.io_nodes
    names = {node.scheduler for node in status.io_nodes if node.number in used and node.scheduler}
    order = sorted(names - {"fifo"})
    if not names or (over and status.tuning is not None):  # it may have been another one
        yield f"It asked for permission {counts}."
    elif order:
        yield f"Each call {'asked' if over else 'asks'} (scheduler {_listed(order)}): {counts}."
    else:
        yield f"Its calls {'had' if over else 'have'} credits: it asked {counts}."
    if questions > calls:
        yield from _more_questions(job)


def _more_questions(job: JobRecord) -> Iterator[str]:
    """Say why a job asked more often than it made calls."""
    if job.stripe and len(job.io_nodes_used) > 1:
        yield "A call asks every I/O node whose stripes it touches."
    else:
        yield (
            "A call asks again where its permission was recalled before it began, as on a busy "
            "machine; one that failed, or went direct, asked too."
        )


def _direct(job: JobRecord) -> Iterator[str]:
    left, failed = job.counters.get("left_bytes", 0), job.counters.get("failed_open", 0)
    if left:
        calls = show_count(job.counters.get("left_to_kernel", 0), "call")
        yield f"{show_volume(left)} in {calls} left to the kernel (copy_file_range, sendfile)"
    if failed:
        yield f"what {show_count(failed, 'call')} did when an I/O node could not"
    if job.direct_bytes > left and not failed:
        yield (
            f"{show_volume(job.direct_bytes - left)} while the job had no I/O "
            "node, or in files that one of another host cannot serve (opened to append)"
        )


def _advice(job: JobRecord, status: messages.Status) -> str | None:
    """Return the most useful thing to do next, if there is any."""
    for counter, advice in AFTER_FAIL_OPENS.items():
        if job.counters.get(counter):
            return advice
    waits, over = job.turn_waited_seconds or 0.0, job.state != "running"
    if _part(max(waits, job.would_have_waited_seconds or 0.0), job) >= MUCH:
        new = job.w_iter is None and job.phases < 2 and status.policy.startswith("set-")
        if job.mode == "enforce" and new and not over:
            return "Give it time: it is in the set of jobs with no history until its second phase."
        verb = "waits" if waits else "would wait"
        if over:
            verb = "waited" if waits else "would have waited"
        return (
            f"It {verb} much under {status.policy}: 'penstock what-if STATE/records' compares it "
            "with other policies (STATE: the site's state directory)."
        )
    return _advice_on_path(job, status)


def _advice_on_path(job: JobRecord, status: messages.Status) -> str | None:
    serving = {node.number for node in status.io_nodes if node.state == "serving"}
    unserved = not job.forwarded_bytes and not serving.intersection(job.io_nodes)
    if unserved and job.pinned is None and explain_allocation.barred(job, status):
        return (
            "Nothing is wrong: its turns and counts are those of every job. An I/O node of another "
            "host carries data for the user that it runs as (docs/live/hosts.md)."
        )
    if unserved and job.io_nodes:
        return "None of its I/O nodes serves now: 'penstock status' lists them."
    if job.direct_bytes > job.moved_bytes / 2 and job.io_nodes:
        goes = "goes" if job.state == "running" else "went"
        return (
            f"Most of its data {goes} direct: docs/live/client-library.md lists the calls that do."
        )
    return None


def advised(job: JobRecord, policy: str) -> str:
    """Return what turns would have meant for a job that ended in mode advise."""
    waited = job.would_have_waited_seconds or 0.0
    if not job.phases:
        return ""
    since = "" if job.reconnected is None else " since it reconnected"
    phases = f"under {policy} its {show_count(job.phases, 'I/O phase')}{since}"
    if waited < NOTICEABLE:
        return f"{phases} would not have waited"
    return (
        f"{phases} would have waited {show_seconds(waited)} in total, and then had the file "
        "system alone"
    )


def _with_part(seconds: float, job: JobRecord) -> str:
    return f"{show_seconds(seconds)}, {_part(seconds, job):.0%} of its time"


def _part(seconds: float, job: JobRecord) -> float:
    return min(seconds / max(job.seconds, 1e-9), 1.0)
