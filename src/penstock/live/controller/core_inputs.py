"""What a live deployment gives to the core: its policies, and jobs as policies know them."""

import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.config import OWN, Config
from penstock.learn.observations import Spread
from penstock.learn.periods import HYSTERESIS
from penstock.live.protocol import messages
from penstock.live.store import Knowledge
from penstock.model import Curve, FileSystem, Job, JobId
from penstock.model.curve import LARGEST, SMALLEST
from penstock.model.job import PRIOR
from penstock.records import Header, PolicySpec

log = logging.getLogger("penstock.controller")
WHY_UNKNOWN = "why-unknown"
"""The hint that says why no bandwidth of an application is known that it has alone."""
CLASS = "class"
"""The hint that says in words what a job's prior is made of."""


def record_header(
    config: Config,
    io_nodes: int,
    *,
    epoch: float,
    now: float,
    file_systems: Sequence[FileSystem] = (),
    emulated: bool = False,
) -> Header:
    """Return the header of a deployment's record: everything that its Manager is made of."""
    allocation, placement = config.allocation, None
    allocator = None
    if allocation.policy != OWN and io_nodes > 0:
        allocator = PolicySpec(policy=allocation.policy, options=allocation.options)
        placement = PolicySpec(
            policy=config.placement.name(allocation.allocator()), options=config.placement.options
        )
    return Header(
        source="emulated" if emulated else "live",
        run=secrets.token_hex(8),
        epoch=epoch,
        began=now,
        site=replace(
            config.site.site(),
            resources=max(io_nodes, 1),
            direct=config.site.direct,
            file_systems=tuple(file_systems),
        ),
        sharing=PolicySpec(policy=config.sharing.policy, options=config.sharing.options),
        allocation=allocator,
        placement=placement,
        remap_delay=allocation.delay(),
        learn={"changes": True, "hysteresis": HYSTERESIS},
        fair_users=config.live.fair_users,
        scope=config.sharing.scope,
        mode=config.live.mode,
        user_modes=dict(config.live.users),
    )


def policy_job(id: JobId, serial: int, begin: messages.BeginJob, knowledge: Knowledge) -> Job:
    """Return a job as policies know it: what it says of itself, and what is known of its kind.

    Whatever is stored, it raises nothing: a bandwidth that no curve can have is left out.
    """
    hints: dict[str, float | str] = {}
    w_iter = _median(knowledge.w_iter)
    if w_iter:
        hints["observations"] = knowledge.iterations
    period = begin.hints.period or w_iter
    if begin.hints.phases and period:
        hints |= {"phases": begin.hints.phases, "period": period}
    bandwidths = _possible(begin, knowledge.bandwidths)
    if bandwidths:
        hints["curve"] = knowledge.source
    if (counts := knowledge.prior_counts) and knowledge.prior is not None:
        hints |= {PRIOR: ",".join(map(str, counts)), CLASS: str(knowledge.prior)}
    if why := knowledge.why_unknown:
        hints[WHY_UNKNOWN] = why
    return Job(
        id=id,
        serial=serial,
        nodes=begin.nodes,
        processes=begin.processes,
        user=begin.user,
        executable=begin.executable,
        w_iter=w_iter,
        curve=Curve.of(bandwidths) if bandwidths else None,
        # What its user says counts until one was observed.
        volume=_median(knowledge.volume) or begin.hints.volume,
        compute=_median(knowledge.compute),
        per_phase=True,
        hints=hints,
    )


def _possible(begin: messages.BeginJob, bandwidths: Mapping[int, float]) -> dict[int, float]:
    possible = {n: b for n, b in bandwidths.items() if n >= 0 and SMALLEST <= b <= LARGEST}
    if left_out := sorted(bandwidths.keys() - possible.keys()):
        log.warning(
            "application %.80r of user %s: impossible bandwidths left out, with these numbers of "
            "I/O nodes: %s",
            *(begin.executable, begin.user, ", ".join(map(str, left_out))),
        )
    return possible


def refreshed(job: Job, begin: messages.BeginJob, knowledge: Knowledge) -> Job:
    """Return a running job with what is known of its kind by now; its w_iter is the Manager's."""
    now = policy_job(job.id, job.serial, begin, knowledge)
    newer = ("curve", PRIOR, CLASS, WHY_UNKNOWN)
    hints = {name: hint for name, hint in job.hints.items() if name not in newer}
    hints |= {name: now.hints[name] for name in newer if name in now.hints}
    return replace(job, curve=now.curve, volume=now.volume, compute=now.compute, hints=hints)


def _median(spread: Spread | None) -> float | None:
    return None if spread is None else spread.median
