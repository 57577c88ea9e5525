"""The controller's HTTP API: version 1, JSON, in the controller's own loop.

It holds no state of the site: every answer is the Service's. Anonymous clients, who can only be on
this host, read what concerns the site; what is a user's own, and every change, needs a token.
"""

import asyncio
import logging
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from penstock.errors import InputError
from penstock.live.deployment.spec import Deployment
from penstock.live.http import server
from penstock.live.http.dashboard import operations
from penstock.live.http.dispatch import Exchanges, Refusal, reply
from penstock.live.http.faults import ConflictError
from penstock.live.http.metrics import CONTENT_TYPE, Scrape, Telemetry
from penstock.live.http.openapi import Operation, document
from penstock.live.http.schema import (
    Health,
    IoNodeAnswer,
    Modes,
    Service,
    SetIoNodes,
    SetKillSwitch,
    SetMode,
    SiteAnswer,
    Turns,
)
from penstock.live.http.static_files import PageFiles
from penstock.live.protocol import messages
from penstock.live.protocol.address import Address, url
from penstock.live.protocol.job_record import JobRecord, JobSummary
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.tokens import Bearer, Tokens

STATUS_SECONDS = 4.0
"""Within which the Service tells its status."""
_IO_NODE = frozenset(IoNodeAnswer.__struct_fields__) - {"pid", "groups", "why"}
log = logging.getLogger("penstock.controller")


class Status:
    """The Service's status: those who ask at once get the same one, one after the other."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._task: asyncio.Task[messages.Status] | None = None
        self._pace = asyncio.Lock()

    async def get(self) -> messages.Status:
        """Return a status that has what was last changed here."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._service.status())
        async with asyncio.timeout(STATUS_SECONDS):
            found = await asyncio.shield(self._task)
            # A hundred answers made at once would keep jobs from their turns for that long.
            async with self._pace:
                await asyncio.sleep(0)
        return found

    def changed(self) -> None:
        """Let nobody who asks from now on get what was gathered before."""
        self._task = None


class Api:
    """The operations, each with who asks (None: anonymous) and what the path and body say."""

    def __init__(
        self, service: Service, *, tokens: Tokens | None = None, job_metrics: int = 0
    ) -> None:
        self.service = service
        self.page = PageFiles()
        self._exchanges = Exchanges(tokens)
        self._telemetry = Telemetry(jobs=job_metrics, names=tokens is not None)
        self._now = Status(service)
        self._document = msgspec.json.encode(document(OPERATIONS, version("penstock")))

    def app(self) -> Starlette:
        """Return what uvicorn serves."""
        paths: dict[str, dict[str, Operation]] = {}
        for operation in OPERATIONS:
            paths.setdefault(operation.path, {})[operation.method] = operation
        routes = [
            Route(path, self._exchanges.dispatch(self, methods), methods=list(methods))
            for path, methods in paths.items()
        ]
        refuse = {HTTPException: self._exchanges.unrouted}
        app = Starlette(routes=routes, exception_handlers=refuse)
        app.router.redirect_slashes = False
        return app

    async def status(self, bearer: Bearer | None) -> dict[str, Any]:
        """Return how things are."""
        found = await self._now.get()
        plain: dict[str, Any] = {
            "site": found.site,
            "jobs": [_visible(job, bearer) for job in found.jobs],
            "io_nodes": [_shown(node, _IO_NODE, bearer) for node in found.io_nodes],
            "forwarded_bytes": found.forwarded_bytes,
            "direct_bytes": found.direct_bytes,
            "fail_open_total": found.fail_open_total,
            "policy": found.policy,
            "mode": found.mode,
            "turns": found.turns,
            "policy_failures": found.policy_failures,
        }
        if bearer:
            plain |= {"roots": found.roots, "emulated": found.emulated, "modes": found.modes}
        return plain

    async def jobs(self, bearer: Bearer | None) -> list[JobSummary]:
        """Return the jobs of the status."""
        return [_visible(job, bearer) for job in (await self._now.get()).jobs]

    async def job(self, bearer: Bearer | None, job: str) -> JobSummary:
        """Return one job."""
        return _visible(await self.service.job(job), bearer)

    async def explain(self, _: Bearer, job: str) -> dict[str, Any]:
        """Return why a job has what it has."""
        return await self.service.explain(job)

    async def io_nodes(self, bearer: Bearer | None) -> list[dict[str, Any]]:
        """Return the I/O nodes of the status."""
        return [_shown(node, _IO_NODE, bearer) for node in (await self._now.get()).io_nodes]

    async def waiting(self, bearer: Bearer | None) -> Turns:
        """Return who transfers and who waits."""
        found = await self.service.waiting()
        if bearer is not None:
            return found
        nobody = msgspec.structs.replace
        return Turns(
            transferring=[nobody(t, user=msgspec.UNSET) for t in found.transferring],
            waiting=[nobody(w, user=msgspec.UNSET) for w in found.waiting],
        )

    async def modes(self, bearer: Bearer | None) -> Modes:
        """Return the modes in force."""
        found = await self.service.modes()
        return found if bearer else msgspec.structs.replace(found, users=msgspec.UNSET)

    async def set_mode(self, bearer: Bearer, wanted: SetMode) -> Modes:
        """Set a mode."""
        if wanted.user is not None or wanted.mode is not None:
            await self.service.set_mode(wanted.user, wanted.mode)
            whose = "the site" if wanted.user is None else f"user {wanted.user}"
            mode = wanted.mode or "the site's"
            log.info("API: %s set the mode of %s to %s", bearer.name, whose, mode)
            self._now.changed()
        return await self.service.modes()

    async def set_kill_switch(self, bearer: Bearer, wanted: SetKillSwitch) -> Modes:
        """Turn the kill switch on or off."""
        await self.service.kill_switch(wanted.on)
        log.warning("API: %s turned the kill switch %s", bearer.name, "on" if wanted.on else "off")
        self._now.changed()
        return await self.service.modes()

    async def set_io_nodes(self, bearer: Bearer, job: str, wanted: SetIoNodes) -> JobRecord:
        """Give a running job other I/O nodes."""
        found = await self.service.job(job)
        if found.state != "running":
            raise Refusal(409, f"job {job} has ended", "GET /v1/jobs lists those that run")
        known = {node["number"] for node in (await self._now.get()).io_nodes}
        if len(set(wanted.nodes)) < len(wanted.nodes):
            raise Refusal(422, "an I/O node is named twice", "name it once")
        if not known.issuperset(wanted.nodes):
            raise Refusal(409, "there is no such I/O node", "GET /v1/io-nodes lists them")
        try:
            await self.service.remap(messages.Remap(job=job, **msgspec.structs.asdict(wanted)))
        except InputError as error:
            raise ConflictError(str(error)) from error  # what can be wrong of itself is not
        log.info("API: %s gave job %s the I/O nodes %s", bearer.name, job, wanted.nodes)
        self._now.changed()
        return await self.service.job(job)

    async def health(self, _: None) -> Response:
        """Return whether the controller lives, and can serve jobs."""
        try:
            io_nodes = (await self._now.get()).io_nodes
            serving = sum(node["state"] == "serving" for node in io_nodes)
            ready, count = serving > 0 or not io_nodes, len(io_nodes)
        except (TimeoutError, OSError):
            ready, count, serving = False, 0, 0
        found = Health(live=True, ready=ready, io_nodes=count, serving=serving)
        return reply(200 if ready else 503, found)

    async def metrics(self, _: Bearer | None) -> Response:
        """Return what Prometheus scrapes."""
        began = time.perf_counter()
        async with asyncio.timeout(STATUS_SECONDS):
            status, turns, measures = await asyncio.gather(
                self._now.get(), self.service.waiting(), self.service.measures()
            )
        seconds = time.perf_counter() - began
        scrape = Scrape(
            status=status,
            turns=turns,
            measures=measures,
            answers=self._exchanges.answers,
            seconds=seconds,
        )
        return Response(self._telemetry.text(scrape), media_type=CONTENT_TYPE)

    async def openapi(self, _: None) -> Response:
        """Return the OpenAPI document."""
        return Response(self._document, media_type="application/json")


def _visible(job: JobRecord, bearer: Bearer | None) -> JobSummary:
    return job if bearer else job.summary()


def _shown(
    told: dict[str, Any], anonymous: frozenset[str], bearer: Bearer | None
) -> dict[str, Any]:
    return told if bearer else {k: v for k, v in told.items() if k in anonymous}


def _get(path: str, summary: str, does: Any, answer: Any, **more: Any) -> Operation:
    told = {"access": "read"} | more
    return Operation(method="GET", path=path, summary=summary, does=does, answer=answer, **told)


OPERATIONS = (
    _get("/v1/status", "How things are", Api.status, SiteAnswer),
    _get("/v1/jobs", "Jobs that run, and those that ended of late", Api.jobs, list[JobRecord]),
    _get("/v1/jobs/{id}", "One job", Api.job, JobRecord, fails=(404,)),
    _get(
        "/v1/jobs/{id}/explain",
        "Why a job has the I/O nodes, turn and share that it has",
        Api.explain,
        dict[str, Any],
        access="named",
        fails=(404,),
    ),
    Operation(
        method="POST",
        path="/v1/jobs/{id}/io-nodes",
        summary="Give a running job other I/O nodes; answered when it has them",
        does=Api.set_io_nodes,
        access="admin",
        answer=JobRecord,
        body=SetIoNodes,
        fails=(404, 409),
    ),
    _get("/v1/io-nodes", "The I/O nodes", Api.io_nodes, list[IoNodeAnswer]),
    _get("/v1/waiting", "Who transfers, who waits, and for whom", Api.waiting, Turns),
    _get("/v1/mode", "The modes in force", Api.modes, Modes),
    Operation(
        method="PUT",
        path="/v1/mode",
        summary="Set the mode of the site, or of a user",
        does=Api.set_mode,
        access="admin",
        answer=Modes,
        body=SetMode,
        fails=(404, 409),
    ),
    Operation(
        method="PUT",
        path="/v1/kill-switch",
        summary="Open every gate, or let turns be enforced again",
        does=Api.set_kill_switch,
        access="admin",
        answer=Modes,
        body=SetKillSwitch,
    ),
    _get("/health", "Whether it lives, and can serve", Api.health, Health, access="open"),
    _get("/metrics", "What Prometheus scrapes", Api.metrics, None),
    _get("/openapi.json", "This document", Api.openapi, dict[str, Any], access="open"),
    *operations.OPERATIONS,
)


class HttpPort:
    """Where a deployment's API is served, if it has one; InputError: it cannot be there."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._listener: socket.socket | None = None
        self._url = StateDirectory(Path(deployment.state)).http
        self._url.unlink(missing_ok=True)
        self._tokens = deployment.checked_tokens()
        if deployment.http is not None:
            self._listener = Address.parse(deployment.http).listen()
            self._url.write_text(url(self._listener) + "\n")

    @asynccontextmanager
    async def serving(self, service: Service) -> AsyncIterator[None]:
        """Serve until the block ends."""
        if self._listener is None:
            yield
            return
        api = Api(service, tokens=self._tokens, job_metrics=self._deployment.job_metrics)
        try:
            async with service.dashboard.serving(), server.serving(api.app(), self._listener):
                yield
        finally:
            self._url.unlink(missing_ok=True)
