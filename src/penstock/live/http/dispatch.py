"""One request of the HTTP API: its token, its body, and its answer."""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from penstock.errors import InputError
from penstock.live.http.openapi import Operation, Problem, Reply
from penstock.live.http.server import HAS_TOKEN
from penstock.live.protocol.tokens import Bearer, Tokens

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
_GUIDE = "docs/reference/http-api.md is the guide, GET /openapi.json the reference"
log = logging.getLogger("penstock.controller")


class NotFoundError(InputError):
    """What the request names does not exist."""

    code = 404


class ConflictError(InputError):
    """The request cannot be carried out in the present state."""

    code = 409


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """What one request may take, and how often there may be one."""

    body_bytes: int = 65536
    body_seconds: float = 5.0
    answer_seconds: float = 8.0
    pause_seconds: float = 0.01
    """Between two reads of a lane, over all clients: granting turns comes first."""
    waiting: int = 128
    """Requests that wait in a lane of reads; further ones are refused."""
    waiting_each: int = 64
    """Of them those of one token, or of one address without a token."""


class _Lane:
    """Requests that are answered one after the other, with a pause between them."""

    def __init__(self, limits: RequestLimits) -> None:
        self._limits = limits
        self._pause = asyncio.Lock()
        self._waiting: Counter[str] = Counter()

    async def wait(self, client: str) -> None:
        """Wait for the request's turn; HttpError: too many do, or too many of this client."""
        limits = self._limits
        if self._waiting[client] >= limits.waiting_each or self._waiting.total() >= limits.waiting:
            raise HttpError(429, "too many requests wait for their answer", "ask less often")
        self._waiting[client] += 1
        try:
            async with self._pause:
                await asyncio.sleep(limits.pause_seconds)
        finally:
            self._waiting[client] -= 1
            if not self._waiting[client]:
                del self._waiting[client]


class HttpError(Exception):
    """An answer with an error status, and a hint what to do."""

    def __init__(self, code: int, error: str, hint: str = _GUIDE) -> None:
        super().__init__(error)
        self.code, self.error, self.hint = code, error, hint

    @classmethod
    def from_exception(cls, error: Exception, operation: Operation) -> "HttpError":
        """Return the answer to an exception of a handler."""
        if isinstance(error, HttpError):
            return error
        if isinstance(error, InputError):
            return cls(getattr(error, "code", 422), str(error))
        if isinstance(error, TimeoutError | OSError):
            hint = "try again, or see the controller's log"
            return cls(503, "the controller did not answer in time", hint)
        log.error("%s %s failed", operation.method, operation.path, exc_info=error)
        return cls(500, "internal error", "see the controller's log")


class Dispatcher:
    """Authorizes requests, calls their handlers, and counts answers by status code."""

    def __init__(
        self,
        tokens: Tokens | None,
        limits: RequestLimits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.answers: Counter[int] = Counter()
        self._tokens, self._limits, self._clock = tokens, limits, clock
        # Strangers wait for strangers: clients with a token never wait behind them.
        self._named, self._anonymous, self._refused = (_Lane(limits) for _ in range(3))
        self._last_warning = -math.inf

    def endpoint(
        self, methods: Mapping[str, tuple[object, Operation]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint of a path: for each method its operation, and the handlers."""

        async def endpoint(request: Request) -> Response:
            handlers, operation = methods["GET" if request.method == "HEAD" else request.method]
            try:
                async with asyncio.timeout(self._limits.answer_seconds):
                    return self._count(await self._answer(handlers, operation, request))
            except ClientDisconnect:
                return Response(status_code=400)  # the client has gone
            except Exception as error:  # no request ends the controller
                return self._problem(HttpError.from_exception(error, operation))

        return endpoint

    async def no_route(self, request: Request, error: Exception) -> Response:
        """Answer a request whose path or method is unknown."""
        assert isinstance(error, HTTPException)
        try:
            await self._refused.wait(_address(request))
        except HttpError as too_many:
            return self._problem(too_many)
        message = "this path does not allow the method" if error.status_code == 405 else "not found"
        response = self._problem(HttpError(error.status_code, message))
        response.headers.update(error.headers or {})
        return response

    async def _answer(self, handlers: object, operation: Operation, request: Request) -> Response:
        try:
            client = self._authorize(operation, request)
        except HttpError:
            await self._refused.wait(_address(request))
            raise
        if client is not None:
            request.scope[HAS_TOKEN] = True
            if operation.access != "admin":
                await self._named.wait(client.name)
        else:
            await self._anonymous.wait(_address(request))
        arguments: dict[str, Any] = dict(request.path_params)
        if operation.body is not None:
            arguments["body"] = _decode_body(operation.body, await self._read_body(request))
        if operation.query is not None:
            arguments["query"] = _decode_query(operation.query, request)
        if "request" in operation.arguments:
            arguments["request"] = request
        answer = await getattr(handlers, operation.name)(client, **arguments)
        match answer:
            case Response():
                return answer
            case Reply():
                return _json(answer.status, answer.content)
        return _json(200, answer)

    def _count(self, response: Response) -> Response:
        self.answers[response.status_code] += 1
        return response

    def _authorize(self, operation: Operation, request: Request) -> Bearer | None:
        """Return the token's owner, or None for an anonymous client; HttpError: not allowed."""
        if operation.access == "open":
            return None
        if self._tokens is None:
            # DNS rebinding: a web page's own host name can be made to resolve to this host.
            if _host(request) not in LOCAL_HOSTS:
                raise self._refuse(403, "the Host header names another host", request)
            if operation.method != "GET" and not _is_same_origin(request):
                raise self._refuse(403, "the Origin header names another web page", request)
            if operation.access == "read":
                return None
            hint = "start with --token-file; or use the penstock command as the controller's user"
            raise self._refuse(403, "without tokens this API only reads", request, hint)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        bearer = self._tokens.bearer(token.strip().encode("latin-1", "replace"))
        if scheme.lower() != "bearer" or bearer is None:
            hint = "send 'Authorization: Bearer TOKEN' with a token of the token file"
            raise self._refuse(401, "a token is required", request, hint)
        if operation.access == "admin" and bearer.role != "admin":
            raise self._refuse(403, "this token only reads", request, "use an admin's token")
        return bearer

    def _refuse(self, code: int, error: str, request: Request, hint: str = _GUIDE) -> HttpError:
        now = self._clock()
        if now - self._last_warning >= 1.0:  # a client cannot fill the log
            self._last_warning = now
            log.warning("API: refused %s to %s: %s", request.method, _address(request), error)
        return HttpError(code, error, hint)

    def _problem(self, error: HttpError) -> Response:
        response = _json(error.code, Problem(error=error.error, hint=error.hint))
        if error.code == 401:
            response.headers["www-authenticate"] = 'Bearer realm="penstock"'
        if error.code in {401, 408, 413, 429}:
            # The rest of a body is not read, and those without a token keep no connection.
            response.headers["connection"] = "close"
        return self._count(response)

    async def _read_body(self, request: Request) -> bytes:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            hint = "send Content-Type: application/json"
            raise HttpError(415, "the content type is not JSON", hint)
        most, seconds = self._limits.body_bytes, self._limits.body_seconds
        too_long = HttpError(413, f"the body is longer than {most} bytes")
        length = request.headers.get("content-length", "0")
        if length.isdigit() and int(length) > most:
            raise too_long
        body = bytearray()
        try:
            async with asyncio.timeout(seconds):
                async for piece in request.stream():
                    body += piece
                    if len(body) > most:
                        raise too_long
        except TimeoutError:
            raise HttpError(408, f"the body did not arrive within {seconds:g} s") from None
        return bytes(body)


def _json(code: int, content: Any) -> Response:
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    return Response(msgspec.json.encode(content), code, headers, media_type="application/json")


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _host(request: Request) -> str:
    host = request.headers.get("host", "").lower()
    return host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]


def _is_same_origin(request: Request) -> bool:
    """Whether the request comes from this server's own page, or from no web page at all."""
    origin = request.headers.get("origin")
    host = request.headers.get("host", "").lower()
    return origin is None or origin.lower() in {f"http://{host}", f"https://{host}"}


def _number(text: str) -> float:
    """Return 2 for 2.0: JSON, and the document, have one kind of number."""
    value = float(text)
    return int(value) if value.is_integer() else value


_DECODER = msgspec.json.Decoder(float_hook=_number)


def _decode_body(kind: Any, body: bytes) -> Any:
    try:
        return msgspec.convert(_DECODER.decode(body), kind)
    except msgspec.ValidationError as error:
        raise HttpError(422, str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HttpError(400, f"the body is not JSON, or nested too deeply: {error}") from error


def _decode_query(kind: Any, request: Request) -> Any:
    parameters = request.query_params.multi_items()
    if len(parameters) > len(dict(parameters)):
        raise HttpError(422, "a query parameter occurs twice")
    try:
        return msgspec.convert(dict(parameters), kind)
    except msgspec.ValidationError as error:
        raise HttpError(422, str(error)) from error
