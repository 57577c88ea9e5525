"""One request of the HTTP API: who sends it, what its body says, and how it is answered."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from penstock.errors import InputError
from penstock.live.http.faults import ConflictError, NotFoundError
from penstock.live.http.openapi import Operation, Problem
from penstock.live.protocol.tokens import Bearer, Tokens

LONGEST_BODY = 65536
BODY_SECONDS, ANSWER_SECONDS = 5.0, 8.0
"""Within which a body comes, and an answer is given."""
PACE_SECONDS = 0.01
"""Between two reads or refusals, over all clients: the controller's time is its jobs'."""
THIS_HOST = frozenset({"localhost", "127.0.0.1", "[::1]"})
_GUIDE = "docs/reference/http-api.md is the guide, GET /openapi.json the reference"
_CODES = ((NotFoundError, 404), (ConflictError, 409), (InputError, 422))
log = logging.getLogger("penstock.controller")


class Refusal(Exception):  # noqa: N818 - it is an answer
    """An answer that is a problem."""

    def __init__(self, code: int, error: str, hint: str = _GUIDE) -> None:
        super().__init__(error)
        self.code, self.error, self.hint = code, error, hint

    @classmethod
    def of(cls, error: Exception, operation: Operation) -> "Refusal":
        """Return the answer to what went wrong."""
        if isinstance(error, Refusal):
            return error
        for kind, code in _CODES:
            if isinstance(error, kind):
                return cls(code, str(error))
        if isinstance(error, TimeoutError | OSError):
            return cls(503, "no answer was to be had in time", "ask again, or see the log")
        log.error("%s %s failed", operation.method, operation.path, exc_info=error)
        return cls(500, "this is a fault of ours", "the log has it")


class Exchanges:
    """Admits requests to operations and answers them; counts answers by status code."""

    def __init__(self, tokens: Tokens | None) -> None:
        self.answers: Counter[int] = Counter()
        self._tokens = tokens
        self._pace = asyncio.Lock()
        self._told_of_denial = 0.0

    def dispatch(self, target: object, methods: Mapping[str, Operation]) -> Callable[..., Any]:
        """Return what serves a path: an operation of `target` a method."""

        async def dispatch(request: Request) -> Response:
            operation = methods["GET" if request.method == "HEAD" else request.method]
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    return self._counted(await self._do(target, operation, request))
            except ClientDisconnect:
                return Response(status_code=400)  # nobody hears it
            except Exception as error:  # whatever it is, the controller goes on
                return self._problem(Refusal.of(error, operation))

        return dispatch

    async def unrouted(self, _: Request, error: Exception) -> Response:
        """Answer where no path or no method matches."""
        assert isinstance(error, HTTPException)
        await self._paced()
        what = "path does not know the method" if error.status_code == 405 else "path is not known"
        response = self._problem(Refusal(error.status_code, f"this {what}"))
        response.headers.update(error.headers or {})
        return response

    async def _do(self, target: object, operation: Operation, request: Request) -> Response:
        try:
            bearer = self._admitted(operation, request)
        except Refusal:
            await self._paced()
            raise
        if operation.access != "admin":
            await self._paced()
        arguments = [_decoded(operation, await _body(request))] if operation.body else []
        if operation.query is not None:
            arguments.append(_asked(operation, request))
        if operation.whole_request:
            arguments.append(request)
        answer = await operation.does(target, bearer, *request.path_params.values(), *arguments)
        return answer if isinstance(answer, Response) else reply(200, answer)

    async def _paced(self) -> None:
        async with self._pace:
            await asyncio.sleep(PACE_SECONDS)

    def _counted(self, response: Response) -> Response:
        self.answers[response.status_code] += 1
        return response

    def _admitted(self, operation: Operation, request: Request) -> Bearer | None:
        """Return who asks; Refusal unless they may."""
        if operation.access == "open":
            return None
        if self._tokens is None:
            # A page in a browser can make a name of its own point to this host, and read on.
            if _host(request) not in THIS_HOST:
                raise self._denied(403, "the Host header names another host", request)
            if operation.method != "GET" and not _same_origin(request):
                raise self._denied(403, "another web page asks for this", request)
            if operation.access == "read":
                return None
            hint = "start with --token-file; or use the penstock command as the controller's user"
            raise self._denied(403, "without tokens this API only reads", request, hint)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        found = self._tokens.bearer(token.strip().encode("latin-1", "replace"))
        if scheme.lower() != "bearer" or found is None:
            hint = "send 'Authorization: Bearer TOKEN' with a token of the token file"
            raise self._denied(401, "a token is needed", request, hint)
        if operation.access == "admin" and found.role != "admin":
            raise self._denied(403, "this token only reads", request, "use an admin's token")
        return found

    def _denied(self, code: int, error: str, request: Request, hint: str = _GUIDE) -> Refusal:
        now = time.monotonic()
        if now - self._told_of_denial >= 1.0:  # a client cannot fill the log
            self._told_of_denial = now
            host = request.client.host if request.client else "?"
            log.warning("API: refused %s to %s: %s", request.method, host, error)
        return Refusal(code, error, hint)

    def _problem(self, refusal: Refusal) -> Response:
        response = reply(refusal.code, Problem(error=refusal.error, hint=refusal.hint))
        if refusal.code == 401:
            response.headers["www-authenticate"] = 'Bearer realm="penstock"'
        if refusal.code in {408, 413}:
            response.headers["connection"] = "close"  # the rest of the body is not wanted
        return self._counted(response)


def reply(code: int, content: Any) -> Response:
    """Return an answer in JSON."""
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    return Response(msgspec.json.encode(content), code, headers, media_type="application/json")


def _host(request: Request) -> str:
    host = request.headers.get("host", "").lower()
    return host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]


def _same_origin(request: Request) -> bool:
    """Say whether no web page asks, or one from here; browsers say so, and others need not."""
    origin = request.headers.get("origin")
    host = request.headers.get("host", "").lower()
    return origin is None or origin.lower() in {f"http://{host}", f"https://{host}"}


def _decoded(operation: Operation, body: bytes) -> Any:
    try:
        return msgspec.convert(_integral(msgspec.json.decode(body)), operation.body)
    except msgspec.ValidationError as error:
        raise Refusal(422, str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(400, f"the body is no JSON, or too deep: {error}") from error


def _asked(operation: Operation, request: Request) -> Any:
    """Return what the query string says."""
    try:
        return msgspec.convert(dict(request.query_params), operation.query)
    except msgspec.ValidationError as error:
        raise Refusal(422, str(error)) from error


def _integral(value: Any) -> Any:
    """Return what was decoded with 2.0 as 2: to JSON, and to the document, they are the same."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_integral(item) for item in value]
        case dict():
            return {key: _integral(item) for key, item in value.items()}
    return value


async def _body(request: Request) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, "the body is not said to be JSON", "send Content-Type: application/json")
    too_long = Refusal(413, f"the body is longer than {LONGEST_BODY} bytes")
    length = request.headers.get("content-length", "0")
    if length.isdigit() and int(length) > LONGEST_BODY:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > LONGEST_BODY:
                    raise too_long
    except TimeoutError:
        raise Refusal(408, f"the body did not come within {BODY_SECONDS:g} s") from None
    return bytes(body)
