"""What the dashboard asks of a controller, answered in the controller's own loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from penstock.live.controller.supervise import for_ever
from penstock.live.http.dashboard.history import History
from penstock.live.http.dashboard.lanes import Lane
from penstock.live.http.dashboard.sampler import Sampler
from penstock.live.http.dashboard.schema import JobPhases, Known, TuningNow
from penstock.live.http.dashboard.timeline import Timelines
from penstock.live.http.dashboard.tuning_history import TunedHistory
from penstock.live.http.faults import NotFoundError
from penstock.live.http.policy_list import PolicyChoice, check, choices
from penstock.live.http.record_list import RecordedRun, Records
from penstock.live.http.what_if_runs import AskWhatIf, WhatIfs

if TYPE_CHECKING:
    from penstock.live.controller.controller import Controller


class Watched:
    """A controller whose history is kept."""

    def __init__(self, controller: "Controller") -> None:
        self._archive = controller.archive
        self._history = History(controller)
        self._sampler = Sampler(controller, self._history)
        self._timelines = Timelines(controller, self._history, self._sampler)
        self._tuned = TunedHistory(controller.tuning, self._history.epoch)
        self._records = Records(controller.state.records, controller.governor.header.run)
        self._what_ifs = WhatIfs(self._records)
        self._policies: list[PolicyChoice] | None = None

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Sample as long as the block goes on; no what-if outlives it."""
        sampling = asyncio.create_task(for_ever(self._sampler.keep, "sampling"))
        try:
            yield
        finally:
            sampling.cancel()
            await self._what_ifs.close()
            with suppress(asyncio.CancelledError):
                await sampling

    async def timeline(self, since: str | None, *, named: bool) -> bytes:
        """Return what changed since a cursor, as JSON."""
        return await self._timelines.answer(since, named=named)

    async def phases(self, job: str, *, named: bool) -> JobPhases:
        """Return a job's last phases."""
        lane = self._history.lanes.by_id.get(job)
        if lane is None:
            raise NotFoundError(f"there is no job {job[:80]!r}; /v1/timeline has those kept")
        phases = [*lane.phases, *([] if lane.phase is None else [lane.phase])]
        changes: list[tuple[float, float]] = []
        for phase in phases:
            if phase.w_iter is not None and (not changes or changes[-1][1] != phase.w_iter):
                changes.append((phase.began, phase.w_iter))
        return JobPhases(
            job=self._timelines.job(lane, named=named),
            phases=phases,
            w_iter=changes,
            pattern=list(lane.patterns),
            known=self._known(lane),
        )

    async def tuning(self) -> TuningNow:
        """Return what is tuned, and what was learnt."""
        return self._tuned.told()

    async def policies(self) -> list[PolicyChoice]:
        """Return the policies that a what-if can take."""
        if self._policies is None:
            self._policies = await asyncio.to_thread(choices)
        return self._policies

    async def records(self) -> list[RecordedRun]:
        """Return the records that there are, the newest first."""
        return await asyncio.to_thread(self._records.listed)

    async def start_what_if(self, wanted: AskWhatIf) -> str:
        """Begin a simulation and return its id."""
        check(wanted.policies, await self.policies())
        return await self._what_ifs.start(wanted)

    async def what_if(self, id: str) -> bytes:
        """Return how a what-if stands, as JSON."""
        return self._what_ifs.told(id)

    async def cancel_what_if(self, id: str) -> bytes:
        """End a what-if."""
        return await self._what_ifs.cancel(id)

    def _known(self, lane: Lane) -> Known | None:
        found = self._archive.knowledge(lane.job)
        if found is None:
            return None
        return Known(
            w_iter=found.w_iter,
            observations=found.observations,
            phase_bytes=found.phase_bytes,
            bandwidth=found.bandwidth,
            curve={str(count): value for count, value in sorted((found.curve or {}).items())},
        )
