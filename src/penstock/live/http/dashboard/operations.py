"""The operations of the dashboard: its page, and what the page asks for."""

import logging
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from penstock.live.http.dashboard.schema import JobPhases, Timeline, TuningNow
from penstock.live.http.dispatch import reply
from penstock.live.http.openapi import Operation
from penstock.live.http.policy_list import PolicyChoice
from penstock.live.http.record_list import RecordedRun
from penstock.live.http.static_files import INDEX, TYPES
from penstock.live.http.what_if_runs import AskWhatIf, WhatIf, WhatIfStarted
from penstock.live.protocol.tokens import Bearer

if TYPE_CHECKING:
    from penstock.live.http.api import Api

log = logging.getLogger("penstock.controller")


class Since(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From where on; what is not known stands for the beginning."""

    since: Annotated[str, Meta(max_length=64)] | None = None


async def page(api: "Api", _: None, request: Request) -> Response:
    """Return the page."""
    return api.page.answer(INDEX, request)


async def asset(api: "Api", _: None, name: str, request: Request) -> Response:
    """Return a file of the page."""
    return api.page.answer(name, request)


async def timeline(api: "Api", bearer: Bearer | None, asked: Since) -> Response:
    """Return what the overview shows."""
    told = await api.service.dashboard.timeline(asked.since, named=bearer is not None)
    return reply(200, msgspec.Raw(told))


async def phases(api: "Api", bearer: Bearer | None, job: str) -> JobPhases:
    """Return a job's last phases."""
    return await api.service.dashboard.phases(job, named=bearer is not None)


async def tuning(api: "Api", _: Bearer | None) -> TuningNow:
    """Return what is tuned."""
    return await api.service.dashboard.tuning()


async def policies(api: "Api", _: Bearer | None) -> list[PolicyChoice]:
    """Return the policies of a what-if."""
    return await api.service.dashboard.policies()


async def records(api: "Api", _: Bearer | None) -> list[RecordedRun]:
    """Return the records."""
    return await api.service.dashboard.records()


async def start_what_if(api: "Api", bearer: Bearer | None, wanted: AskWhatIf) -> WhatIfStarted:
    """Begin a simulation."""
    id = await api.service.dashboard.start_what_if(wanted)
    who = "somebody on this host" if bearer is None else bearer.name
    log.info("API: %s asks what-if %s of run %s", who, id, wanted.run)
    return WhatIfStarted(id=id)


async def what_if(api: "Api", _: Bearer | None, id: str) -> Response:
    """Return how a what-if stands."""
    return reply(200, msgspec.Raw(await api.service.dashboard.what_if(id)))


async def cancel_what_if(api: "Api", _: Bearer | None, id: str) -> Response:
    """End a what-if."""
    return reply(200, msgspec.Raw(await api.service.dashboard.cancel_what_if(id)))


def _get(path: str, summary: str, does: Any, answer: Any, **more: Any) -> Operation:
    told = {"access": "read"} | more
    return Operation(method="GET", path=path, summary=summary, does=does, answer=answer, **told)


_MEDIA = tuple(media.partition(";")[0] for media in TYPES.values())
OPERATIONS = (
    _get(
        "/",
        "The dashboard",
        page,
        None,
        access="open",
        media=("text/html",),
        whole_request=True,
    ),
    _get(
        "/assets/{name}",
        "A file of the dashboard",
        asset,
        None,
        access="open",
        fails=(404,),
        media=_MEDIA,
        whole_request=True,
    ),
    _get(
        "/v1/timeline",
        "What jobs and I/O nodes did, since a cursor",
        timeline,
        Timeline,
        query=Since,
    ),
    _get(
        "/v1/jobs/{id}/phases",
        "A job's phases: predicted and observed",
        phases,
        JobPhases,
        fails=(404,),
    ),
    _get("/v1/tuning", "What is tuned at I/O nodes, and what was learnt", tuning, TuningNow),
    _get("/v1/policies", "Policies that a what-if can take", policies, list[PolicyChoice]),
    _get("/v1/records", "Records that a what-if can take", records, list[RecordedRun]),
    Operation(
        method="POST",
        path="/v1/what-if",
        summary="Simulate a record under other policies; changes nothing",
        does=start_what_if,
        access="read",
        answer=WhatIfStarted,
        body=AskWhatIf,
        fails=(404, 409),
    ),
    _get("/v1/what-if/{id}", "How a what-if stands", what_if, WhatIf, fails=(404,)),
    Operation(
        method="DELETE",
        path="/v1/what-if/{id}",
        summary="End a what-if",
        does=cancel_what_if,
        access="read",
        answer=WhatIf,
        fails=(404,),
    ),
)
