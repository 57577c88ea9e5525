"""The operations of the dashboard: its page, and the data that the page requests."""

import logging
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from penstock.live.http.dashboard.schema import JobPhases, Timeline, TuningNow
from penstock.live.http.openapi import Reply, operation
from penstock.live.http.policy_list import PolicyChoice
from penstock.live.http.record_list import RecordedRun
from penstock.live.http.schema import Dashboard
from penstock.live.http.static_files import INDEX, TYPES, PageFiles
from penstock.live.http.what_if_runs import WhatIf, WhatIfRequest, WhatIfStarted
from penstock.live.protocol.tokens import Bearer

_MEDIA = tuple(media.partition(";")[0] for media in TYPES.values())
log = logging.getLogger("penstock.controller")


class Since(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cursor of an earlier answer; an unknown one means from the beginning."""

    since: Annotated[str, Meta(max_length=64)] | None = None


class DashboardApi:
    """The dashboard's operations; `client` is None if anonymous."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard
        self._page = PageFiles()

    @operation("GET", "/", access="open", media=("text/html",))
    async def page(self, _: None, request: Request) -> Response:
        """The dashboard."""
        return self._page.answer(INDEX, request)

    @operation("GET", "/assets/{name}", access="open", fails=(404,), media=_MEDIA)
    async def asset(self, _: None, name: str, request: Request) -> Response:
        """A file of the dashboard."""
        return self._page.answer(name, request)

    @operation("GET", "/v1/timeline")
    async def timeline(self, client: Bearer | None, query: Since) -> Reply[Timeline]:
        """What jobs and I/O nodes did since a cursor."""
        return await self._dashboard.timeline(query.since, private=client is not None)

    @operation("GET", "/v1/jobs/{id}/phases", fails=(404,))
    async def phases(self, client: Bearer | None, id: str) -> JobPhases:
        """A job's phases: predicted and observed."""
        return await self._dashboard.phases(id, private=client is not None)

    @operation("GET", "/v1/tuning")
    async def tuning(self, _: Bearer | None) -> TuningNow:
        """The tuned parameters of I/O nodes, and what was learned of their values."""
        return await self._dashboard.tuning()

    @operation("GET", "/v1/policies")
    async def policies(self, _: Bearer | None) -> list[PolicyChoice]:
        """The policies that a what-if can use."""
        return await self._dashboard.policies()

    @operation("GET", "/v1/records")
    async def records(self, _: Bearer | None) -> list[RecordedRun]:
        """The records that a what-if can use."""
        return await self._dashboard.records()

    @operation("POST", "/v1/what-if", fails=(404, 409))
    async def start_what_if(self, client: Bearer | None, body: WhatIfRequest) -> WhatIfStarted:
        """Simulate a record under other policies; changes nothing on the site."""
        id = await self._dashboard.start_what_if(body)
        name = "an anonymous client" if client is None else client.name
        log.info("API: %s started what-if %s of run %s", name, id, body.run)
        return WhatIfStarted(id=id)

    @operation("GET", "/v1/what-if/{id}", fails=(404,))
    async def what_if(self, _: Bearer | None, id: str) -> Reply[WhatIf]:
        """The state of a what-if, and its result."""
        return await self._dashboard.what_if(id)

    @operation("DELETE", "/v1/what-if/{id}", fails=(404,))
    async def cancel_what_if(self, _: Bearer | None, id: str) -> Reply[WhatIf]:
        """End a what-if."""
        return await self._dashboard.cancel_what_if(id)
