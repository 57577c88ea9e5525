"""The controller's HTTP API: version 1, JSON, in the controller's own loop.

It holds no state of the site: every answer is the controller's. Anonymous clients, which can only
be on this host, read what concerns the site; what is private to a user, and every change, needs a
token.
"""

import asyncio
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from penstock.errors import InputError
from penstock.live.deployment.spec import Deployment
from penstock.live.http import server
from penstock.live.http.controller_service import ControllerService
from penstock.live.http.dashboard.operations import DashboardApi
from penstock.live.http.dispatch import ConflictError, Dispatcher, HttpError, RequestLimits
from penstock.live.http.metrics import CONTENT_TYPE, ControllerMetrics, Scrape
from penstock.live.http.openapi import Operation, Reply, document, operation, operations
from penstock.live.http.schema import (
    MODE_OR_USER,
    Explanation,
    Health,
    Modes,
    SetIoNodes,
    SetKillSwitch,
    SetMode,
    SiteRecord,
    SiteSummary,
    Turns,
)
from penstock.live.http.static_files import PageApi
from penstock.live.protocol import messages
from penstock.live.protocol.address import Address, url
from penstock.live.protocol.io_node_record import IoNodeRecord, IoNodeSummary
from penstock.live.protocol.job_record import JobRecord, JobSummary
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.tokens import Bearer, Tokens

STATUS_SECONDS = 4.0
"""Time limit for the controller's status."""
log = logging.getLogger("penstock.controller")


class SharedStatus:
    """The site's status: requests at the same time share one, and are answered in turn."""

    def __init__(self, service: ControllerService, seconds: float = STATUS_SECONDS) -> None:
        self._service, self._seconds = service, seconds
        self._task: asyncio.Task[messages.Status] | None = None
        self._pace = asyncio.Lock()

    async def get(self) -> messages.Status:
        """Return a status that includes every change made through this API."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._service.status())
        async with asyncio.timeout(self._seconds):
            status = await asyncio.shield(self._task)
            # Encoding a hundred answers at once would delay turns for that long.
            async with self._pace:
                await asyncio.sleep(0)
        return status

    def invalidate(self) -> None:
        """Let later requests not share a status from before a change."""
        self._task = None


class SiteApi:
    """The operations on jobs, I/O nodes, turns and modes; `client` is None if anonymous."""

    def __init__(
        self,
        service: ControllerService,
        status: SharedStatus,
        metrics: ControllerMetrics,
        dispatcher: Dispatcher,
    ) -> None:
        self._service, self._status = service, status
        self._metrics, self._dispatcher = metrics, dispatcher

    @operation("GET", "/v1/status")
    async def status(self, client: Bearer | None) -> SiteRecord | SiteSummary:
        """The site's status."""
        status = await self._status.get()
        kind = SiteRecord if client else SiteSummary
        fields = {name: getattr(status, name) for name in kind.__struct_fields__}
        if client is None:
            fields["jobs"] = [job.summary() for job in status.jobs]
            fields["io_nodes"] = [node.summary() for node in status.io_nodes]
            fields["file_systems"] = [each.summary() for each in status.file_systems]
        return kind(**fields)

    @operation("GET", "/v1/jobs")
    async def jobs(self, client: Bearer | None) -> list[JobRecord] | list[JobSummary]:
        """The jobs that run, and those that ended recently."""
        jobs = (await self._status.get()).jobs
        return jobs if client else [job.summary() for job in jobs]

    @operation("GET", "/v1/jobs/{id}", fails=(404,))
    async def job(self, client: Bearer | None, id: str) -> JobRecord | JobSummary:
        """One job."""
        job = await self._service.job(id)
        return job if client else job.summary()

    @operation("GET", "/v1/jobs/{id}/explain", access="named", fails=(404,))
    async def explain(self, _: Bearer, id: str) -> Explanation:
        """Why a job has the I/O nodes, the turn and the share that it has."""
        record = await self._service.job(id)
        names = set(Explanation.__struct_fields__) - {"job", "policy"}
        fields = {name: getattr(record, name) for name in names}
        return Explanation(job=id, policy=self._service.policy, **fields)

    @operation("POST", "/v1/jobs/{id}/io-nodes", access="admin", fails=(404, 409))
    async def set_io_nodes(self, client: Bearer, id: str, body: SetIoNodes) -> JobRecord:
        """Give a running job other I/O nodes; the answer comes once it uses them."""
        if (await self._service.job(id)).state != "running":
            raise HttpError(409, f"job {id} has ended", "GET /v1/jobs lists the running jobs")
        if len(set(body.nodes)) < len(body.nodes):
            raise HttpError(422, "an I/O node is named twice", "name each I/O node once")
        numbers = {node.number for node in (await self._status.get()).io_nodes}
        if not numbers.issuperset(body.nodes):
            raise HttpError(409, "no such I/O node", "GET /v1/io-nodes lists them")
        try:
            remap = messages.Remap(job=id, nodes=body.nodes, stripe=body.stripe)
            await self._service.remap(remap)
        except InputError as error:
            raise ConflictError(str(error)) from error  # the request itself is valid
        log.info("API: %s gave job %s the I/O nodes %s", client.name, id, body.nodes)
        self._status.invalidate()
        return await self._service.job(id)

    @operation("GET", "/v1/io-nodes")
    async def io_nodes(self, client: Bearer | None) -> list[IoNodeRecord] | list[IoNodeSummary]:
        """The I/O nodes."""
        nodes = (await self._status.get()).io_nodes
        return nodes if client else [node.summary() for node in nodes]

    @operation("GET", "/v1/waiting")
    async def waiting(self, client: Bearer | None) -> Turns:
        """The jobs that transfer, and the jobs that wait, with those before them."""
        turns = await self._service.waiting()
        if client is not None:
            return turns
        return Turns(
            transferring=[
                msgspec.structs.replace(job, user=msgspec.UNSET) for job in turns.transferring
            ],
            waiting=[msgspec.structs.replace(job, user=msgspec.UNSET) for job in turns.waiting],
        )

    @operation("GET", "/v1/mode")
    async def modes(self, client: Bearer | None) -> Modes:
        """The modes in force."""
        modes = await self._service.modes()
        return modes if client else msgspec.structs.replace(modes, users=msgspec.UNSET)

    @operation("PUT", "/v1/mode", access="admin", fails=(404, 409))
    async def set_mode(self, client: Bearer, body: Annotated[SetMode, MODE_OR_USER]) -> Modes:
        """Set the mode of the site, or of a user."""
        await self._service.set_mode(body.user, body.mode)
        scope = "the site" if body.user is None else f"user {body.user}"
        mode = body.mode or "the site's"
        log.info("API: %s set the mode of %s to %s", client.name, scope, mode)
        self._status.invalidate()
        return await self._service.modes()

    @operation("PUT", "/v1/kill-switch", access="admin")
    async def set_kill_switch(self, client: Bearer, body: SetKillSwitch) -> Modes:
        """Open every gate, or enforce turns again."""
        await self._service.kill_switch(body.on)
        log.warning("API: %s turned the kill switch %s", client.name, "on" if body.on else "off")
        self._status.invalidate()
        return await self._service.modes()

    @operation("GET", "/health", access="open", unready=True)
    async def health(self, _: None) -> Reply[Health]:
        """Whether the controller is alive, and can serve jobs."""
        try:
            states = [node.state for node in (await self._status.get()).io_nodes]
        except (TimeoutError, OSError):
            return Reply(Health(live=True, ready=False, io_nodes=0, serving=0), 503)
        serving = states.count("serving")
        ready = serving > 0 or not states
        health = Health(live=True, ready=ready, io_nodes=len(states), serving=serving)
        return Reply(health, 200 if ready else 503)

    @operation("GET", "/metrics", media=("text/plain",))
    async def metrics(self, _: Bearer | None) -> Response:
        """Metrics in Prometheus' text format."""
        began = time.perf_counter()
        status, turns, measures = await asyncio.gather(
            self._status.get(), self._service.waiting(), self._service.measures()
        )
        scrape = Scrape(
            status=status,
            turns=turns,
            measures=measures,
            answers=self._dispatcher.answers,
            seconds=time.perf_counter() - began,
        )
        return Response(self._metrics.text(scrape), media_type=CONTENT_TYPE)

    @operation("GET", "/openapi.json", access="open")
    async def openapi(self, _: None) -> Reply[dict[str, Any]]:
        """This document."""
        return _DOCUMENT


OPERATIONS = tuple(one for kind in (SiteApi, PageApi, DashboardApi) for one in operations(kind))
_DOCUMENT: Reply[dict[str, Any]] = Reply(
    msgspec.Raw(msgspec.json.encode(document(OPERATIONS, version("penstock"))))
)


class Api:
    """The whole API of a controller, as an ASGI application."""

    def __init__(
        self,
        service: ControllerService,
        *,
        tokens: Tokens | None = None,
        job_metrics: int = 0,
        limits: RequestLimits | None = None,
        status_seconds: float = STATUS_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._dispatcher = Dispatcher(tokens, limits or RequestLimits(), clock)
        status = SharedStatus(service, status_seconds)
        metrics = ControllerMetrics(jobs=job_metrics, names=tokens is not None)
        site = SiteApi(service, status, metrics, self._dispatcher)
        self._handlers = {SiteApi: site, PageApi: PageApi(), DashboardApi: service.dashboard}

    def app(self) -> Starlette:
        """Return the application that uvicorn serves."""
        paths: dict[str, dict[str, tuple[object, Operation]]] = {}
        for kind, handlers in self._handlers.items():
            for one in operations(kind):
                paths.setdefault(one.path, {})[one.method] = (handlers, one)
        routes = [
            Route(path, self._dispatcher.endpoint(methods), methods=list(methods))
            for path, methods in paths.items()
        ]
        app = Starlette(
            routes=routes, exception_handlers={HTTPException: self._dispatcher.no_route}
        )
        app.router.redirect_slashes = False
        return app


class HttpPort:
    """The address of a deployment's API, if it has one; InputError: it cannot be bound."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._listener: socket.socket | None = None
        self._url = StateDirectory(Path(deployment.state)).http
        self._url.unlink(missing_ok=True)
        self._tokens = deployment.tokens()
        if deployment.http is not None:
            self._listener = Address.parse(deployment.http).listen()
            self._url.write_text(url(self._listener) + "\n")

    @asynccontextmanager
    async def serving(self, service: ControllerService) -> AsyncIterator[None]:
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
