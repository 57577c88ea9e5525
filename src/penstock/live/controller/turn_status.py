"""Fills the fields of a job's record that describe its phases and its turn."""

from contextlib import suppress

import msgspec

from penstock.live.controller.turns import Turns, TurnState
from penstock.live.protocol.job_record import JobRecord
from penstock.model import JobId
from penstock.policies.base import Own


def with_progress(record: JobRecord, state: TurnState) -> JobRecord:
    """Return a job's record with what its phases did so far."""
    phases = state.phases
    return msgspec.structs.replace(
        record,
        phases=phases,
        phase_bytes=state.bytes / phases if phases else None,
        phase_seconds=state.transferred / phases if phases else 0.0,
        turn_waited_seconds=state.waited,
        bandwidth=state.bandwidth or None,
    )


def with_turn(
    record: JobRecord, turns: Turns, id: JobId, *, mode: str, longest_wait: float, now: float
) -> JobRecord:
    """Return a job's record with its phases and its turn; `id` is that of its turns."""
    state, manager = turns.states[id], turns.manager
    job, group, weight = manager.jobs[id], None, None
    with suppress(Exception):  # a policy file may raise anything
        group, weight = manager.sharing.group(job), manager.sharing.weight(job)
    period, phase = manager.period(id), state.phase
    record = msgspec.structs.replace(
        with_progress(record, state),
        mode=mode,
        doing="computing" if record.state == "running" else record.state,
        group=None if group is Own.GROUP else str(group),
        weight=weight,
        w_iter=job.w_iter,
        iterations=period.iterations if period else 0,
    )
    if phase is None or record.state != "running":
        return record
    if phase.is_waiting:
        waited = now - phase.began
        return msgspec.structs.replace(
            record,
            doing="waiting",
            since_seconds=waited,
            at_most_seconds=max(longest_wait - waited, 0.0),
            behind=manager.ahead_of(id),
        )
    began = phase.began if phase.admitted is None else phase.admitted
    return msgspec.structs.replace(
        record, doing="transferring", since_seconds=now - began, share=turns.share(id)
    )
