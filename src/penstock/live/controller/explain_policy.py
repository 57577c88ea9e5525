"""How the policy and the mode of its turns treat a job, in plain sentences."""

from collections.abc import Iterator

from penstock.live.protocol import messages
from penstock.live.protocol.job_record import JobRecord
from penstock.units import show_count, show_seconds


def mode(job: JobRecord, status: messages.Status) -> Iterator[str]:
    """Say in which mode a running job is, whose mode that is, and what it means."""
    owner = "the site's"
    if status.mode != "off" and job.user in status.modes:
        owner = f"{job.user}'s own"
    shares_only = job.group is None and job.weight is not None
    meaning = {
        "enforce": "its share is enforced" if shares_only else "it waits for its turns",
        "off": "the kill switch is on, no job waits",
    }
    yield f"Its mode is {job.mode} ({owner}): {meaning.get(job.mode or '', 'it never waits')}."


def past_place(job: JobRecord, status: messages.Status) -> Iterator[str]:
    """Say how the policy treated a job that is over; nothing where it did not matter."""
    modes = {mode for mode, count in job.phases_by_mode.items() if count and mode != "off"}
    if job.state != "running" and modes:
        yield from place(job, status, enforced="enforce" in modes, over=True)


def place(
    job: JobRecord, status: messages.Status, *, enforced: bool, over: bool = False
) -> Iterator[str]:
    """Say how the policy treats a job, or treated one that is over."""
    if job.weight is None:
        return
    is_, takes = ("was", "took") if over else ("is", "takes")
    if not enforced:
        takes = "would have taken" if over else "would take"
    if job.group is None:
        shares, transfer = ("shared", "transferred") if over else ("shares", "transfer")
        waits = "waited" if over else "waits"
        turns = f"it never {waits}: it {shares} with all jobs that {transfer}"
    else:
        noun, name = "group", repr(job.group)
        if status.policy.startswith("set-"):
            noun, name = "set", job.group
        turns = f"it {is_} in {noun} {name}, and {takes} turns with the jobs of that {noun}"
    yield f"Under {status.policy} {turns}; its weight {is_} {job.weight:.3g}."
    if job.w_iter is None and over:
        return
    if job.w_iter is None:
        yield "The length of its iterations (w_iter) is not known yet: that takes two phases."
        if status.policy.startswith("set-"):
            yield "Until then it is in the set of jobs with no history, with that set's weight."
    elif job.iterations:
        source = f"{show_count(job.iterations, 'iteration')} of this run"
        if job.earlier_iterations:
            source += f" and earlier runs of {_application(job)}"
        yield f"Its w_iter {is_} {show_seconds(job.w_iter)}, learnt from {source}."
    else:
        known = "from what is known of its application"
        yield f"Its w_iter {is_} {show_seconds(job.w_iter)}, {known}."


def _application(job: JobRecord) -> str:
    return f"the application {job.executable!r}" if job.executable else "its application"
