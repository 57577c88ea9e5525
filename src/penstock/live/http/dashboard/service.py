"""The dashboard's part of a controller: its history, tuned values, records and what-if runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from penstock.live.controller.supervise import run_forever
from penstock.live.http.dashboard.history import History
from penstock.live.http.dashboard.lanes import Lane
from penstock.live.http.dashboard.sampler import Sampler
from penstock.live.http.dashboard.schema import Application, JobPhases, Timeline, TuningNow
from penstock.live.http.dashboard.timeline import TimelineBuilder
from penstock.live.http.dashboard.tuning_history import TuningHistory
from penstock.live.http.dispatch import NotFoundError
from penstock.live.http.openapi import Reply
from penstock.live.http.policy_list import PolicyChoice, check, choices
from penstock.live.http.record_list import RecordedRun, RecordList
from penstock.live.http.what_if_runs import WhatIf, WhatIfRequest, WhatIfRuns

if TYPE_CHECKING:
    from penstock.live.controller.controller import Controller


class DashboardService:
    """Records a controller's history and answers from it, in the controller's own loop."""

    def __init__(self, controller: "Controller") -> None:
        self._archive = controller.archive
        self._history = History(controller)
        self._sampler = Sampler(controller, self._history)
        self._timelines = TimelineBuilder(controller, self._history, self._sampler)
        self._tuning = TuningHistory(controller.tuning, self._history.now)
        self._records = RecordList(controller.state.records, controller.turn_service.header.run)
        self._what_ifs = WhatIfRuns(self._records)
        self._policies: list[PolicyChoice] | None = None

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Sample while the block runs; no what-if outlives it."""
        sampling = asyncio.create_task(run_forever(self._sampler.run, "sampling"))
        try:
            yield
        finally:
            sampling.cancel()
            await self._what_ifs.close()
            with suppress(asyncio.CancelledError):
                await sampling

    async def timeline(self, since: str | None, *, private: bool) -> Reply[Timeline]:
        """Return what changed since a cursor."""
        return Reply(msgspec.Raw(await self._timelines.answer(since, private=private)))

    async def phases(self, job: str, *, private: bool) -> JobPhases:
        """Return a job's last phases."""
        lane = self._history.lanes.by_id.get(job)
        if lane is None:
            raise NotFoundError(f"there is no job {job[:80]!r}; GET /v1/timeline lists the jobs")
        phases = [*lane.phases, *([] if lane.phase is None else [lane.phase])]
        changes: list[tuple[float, float]] = []
        for phase in phases:
            if phase.w_iter is not None and (not changes or changes[-1][1] != phase.w_iter):
                changes.append((phase.began, phase.w_iter))
        return JobPhases(
            job=self._timelines.job(lane, private=private),
            phases=phases,
            w_iter=changes,
            pattern=list(lane.patterns),
            known=self._application(lane),
        )

    async def tuning(self) -> TuningNow:
        """Return the tuned parameters, and what was learned of their values."""
        return self._tuning.answer()

    async def policies(self) -> list[PolicyChoice]:
        """Return the policies that a what-if can use."""
        if self._policies is None:
            self._policies = await asyncio.to_thread(choices)
        return self._policies

    async def records(self) -> list[RecordedRun]:
        """Return the records that a what-if can use, newest first."""
        return await asyncio.to_thread(self._records.runs)

    async def start_what_if(self, request: WhatIfRequest) -> str:
        """Start a simulation and return its id."""
        check(request.policies, await self.policies())
        return await self._what_ifs.start(request)

    async def what_if(self, id: str) -> Reply[WhatIf]:
        """Return the what-if of this id."""
        return self._what_ifs.answer(id)

    async def cancel_what_if(self, id: str) -> Reply[WhatIf]:
        """End a what-if and return it."""
        return await self._what_ifs.cancel(id)

    def _application(self, lane: Lane) -> Application | None:
        knowledge = self._archive.knowledge(lane.job)
        if knowledge is None:
            return None
        return Application(
            w_iter=knowledge.w_iter,
            observations=knowledge.observations,
            phase_bytes=knowledge.phase_bytes,
            bandwidth=knowledge.bandwidth,
            curve={str(count): value for count, value in sorted((knowledge.curve or {}).items())},
        )
