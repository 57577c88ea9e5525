"""The dashboard's operations: history, tuned values, records and what-if runs of a controller."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from penstock.live.controller.supervise import run_forever
from penstock.live.http.dashboard.history import History
from penstock.live.http.dashboard.lanes import Lane
from penstock.live.http.dashboard.sampler import Sampler
from penstock.live.http.dashboard.schema import Application, JobPhases, Timeline, TuningNow
from penstock.live.http.dashboard.timeline import TimelineBuilder
from penstock.live.http.dashboard.tuning_history import TuningHistory
from penstock.live.http.dispatch import NotFoundError
from penstock.live.http.openapi import Reply, operation
from penstock.live.http.what_if_choices import (
    PolicyChoice,
    RecordedRun,
    RecordList,
    check_policies,
    policy_choices,
)
from penstock.live.http.what_if_runs import (
    ONE_KIND,
    WhatIf,
    WhatIfRequest,
    WhatIfRuns,
    WhatIfStarted,
)
from penstock.live.protocol.tokens import Bearer

if TYPE_CHECKING:
    from penstock.live.controller.controller import Controller

log = logging.getLogger("penstock.controller")


class Since(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cursor of an earlier answer; an unknown one means from the beginning."""

    since: Annotated[str, Meta(max_length=64)] | None = None


class DashboardApi:
    """Records a controller's history and answers from it; `client` is None if anonymous."""

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

    @operation("GET", "/v1/timeline")
    async def timeline(self, client: Bearer | None, query: Since) -> Reply[Timeline]:
        """What jobs and I/O nodes did since a cursor."""
        answer = await self._timelines.answer(query.since, private=client is not None)
        return Reply(msgspec.Raw(answer))

    @operation("GET", "/v1/jobs/{id}/phases", fails=(404,))
    async def phases(self, client: Bearer | None, id: str) -> JobPhases:
        """A job's phases: predicted and observed."""
        lane = self._history.lanes.by_id.get(id)
        if lane is None:
            raise NotFoundError(f"there is no job {id[:80]!r}; GET /v1/timeline lists the jobs")
        phases = [*lane.phases, *([] if lane.phase is None else [lane.phase])]
        changes: list[tuple[float, float]] = []
        for phase in phases:
            if phase.w_iter is not None and (not changes or changes[-1][1] != phase.w_iter):
                changes.append((phase.began, phase.w_iter))
        return JobPhases(
            job=self._timelines.job(lane, private=client is not None),
            phases=phases,
            w_iter=changes,
            pattern=list(lane.patterns),
            known=self._application(lane),
        )

    @operation("GET", "/v1/tuning")
    async def tuning(self, _: Bearer | None) -> TuningNow:
        """The tuned parameters of I/O nodes, and what was learned of their values."""
        return self._tuning.answer()

    @operation("GET", "/v1/policies")
    async def policies(self, _: Bearer | None) -> list[PolicyChoice]:
        """The policies that a what-if can use."""
        if self._policies is None:
            self._policies = await asyncio.to_thread(policy_choices)
        return self._policies

    @operation("GET", "/v1/records")
    async def records(self, _: Bearer | None) -> list[RecordedRun]:
        """The records that a what-if can use, newest first."""
        return await asyncio.to_thread(self._records.runs)

    @operation("POST", "/v1/what-if", fails=(404, 409))
    async def start_what_if(
        self, client: Bearer | None, body: Annotated[WhatIfRequest, ONE_KIND]
    ) -> WhatIfStarted:
        """Simulate a record under other policies; changes nothing on the site."""
        choices = await self.policies(client)
        check_policies("sharing", body.policies, choices)
        check_policies("allocation", body.allocation, choices)
        check_policies("placement", body.placement, choices)
        id = await self._what_ifs.start(body)
        name = "an anonymous client" if client is None else client.name
        log.info("API: %s started what-if %s of run %s", name, id, body.run)
        return WhatIfStarted(id=id)

    @operation("GET", "/v1/what-if/{id}", fails=(404,))
    async def what_if(self, _: Bearer | None, id: str) -> Reply[WhatIf]:
        """The state of a what-if, and its result."""
        return self._what_ifs.answer(id)

    @operation("DELETE", "/v1/what-if/{id}", fails=(404,))
    async def cancel_what_if(self, _: Bearer | None, id: str) -> Reply[WhatIf]:
        """End a what-if."""
        return await self._what_ifs.cancel(id)

    def _application(self, lane: Lane) -> Application | None:
        knowledge = self._archive.knowledge(lane.job)
        if knowledge is None:
            return None
        w_iter, volume, compute = knowledge.w_iter, knowledge.volume, knowledge.compute
        return Application(
            w_iter=None if w_iter is None else w_iter.median,
            observations=knowledge.iterations,
            phase_bytes=None if volume is None else volume.median,
            compute_seconds=None if compute is None else compute.median,
            curve={str(count): value for count, value in knowledge.bandwidths.items()},
        )
