"""The operations of the dashboard: its page, and what the page asks for."""

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from penstock.live.history.answers import Timeline
from penstock.live.http.exchange import reply
from penstock.live.http.openapi import Operation
from penstock.live.http.page_files import INDEX, TYPES
from penstock.live.http.tokens import Bearer

if TYPE_CHECKING:
    from penstock.live.http.api import Api


class Since(msgspec.Struct, frozen=True, kw_only=True):
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
)
