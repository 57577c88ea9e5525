"""The OpenAPI document of the HTTP API, made from its table of operations and their types."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal, get_args

import msgspec

Access = Literal["open", "read", "named", "admin"]
"""Anybody; who may read; who has a token; who has an admin's token."""
ID_PATTERN = "^[A-Za-z0-9_.+-]{1,63}$"
_PART = re.compile(r"\{(\w+)\}")
_REF = "#/components/schemas/{name}"
_REASONS = {
    400: "The request is not understood.",
    401: "A token is needed, and none or a wrong one was given.",
    403: "The token's role does not allow it, or nobody may without tokens.",
    404: "There is no such thing.",
    408: "The body did not come in time.",
    409: "It cannot be done as things are now.",
    413: "The body is too long.",
    415: "The body is not said to be JSON.",
    422: "It is understood, and does not say what can be done.",
    503: "The controller did not answer in time, or is not ready.",
}


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong, and what to do."""

    error: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path."""

    method: Literal["GET", "PUT", "POST", "DELETE"]
    path: str
    summary: str
    does: Callable[..., Awaitable[Any]]
    access: Access
    answer: Any  # a type; None: text
    body: Any = None  # a type
    query: Any = None  # a type, of texts that may be left out
    fails: tuple[int, ...] = ()
    media: tuple[str, ...] = ("text/plain",)  # of a text
    whole_request: bool = False  # it answers by the request's headers, too

    @property
    def codes(self) -> list[int]:
        """Return the status codes of its failures."""
        codes = {*self.fails, 503}
        if self.access != "open":
            codes |= {401, 403}
        if self.body is not None:
            codes |= {400, 408, 413, 415, 422}
        if self.query is not None:
            codes |= {422}
        return sorted(codes)


def document(operations: Iterable[Operation], version: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of these operations."""
    operations = list(operations)
    said = [t for o in operations for t in (o.answer, o.body)]
    types = [t for s in said for t in (s, *get_args(s)) if isinstance(t, type)]
    types = [t for t in dict.fromkeys([*types, Problem]) if issubclass(t, msgspec.Struct)]
    _, components = msgspec.json.schema_components(types, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Penstock controller",
            "version": version,
            "description": "Jobs, I/O nodes, turns and modes of a site. "
            "docs/reference/http-api.md is the guide.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(operation: Operation) -> dict[str, Any]:
    answers = {"200": _answer(operation)}
    for code in operation.codes:
        problem = _content({"$ref": _REF.format(name="Problem")})
        answers[str(code)] = {"description": _REASONS[code], "content": problem}
    if operation.whole_request:
        answers["304"] = {"description": "Who asks has it as it is."}
    if operation.path == "/health":
        answers["503"] = {"description": _REASONS[503], "content": _content(_schema(operation))}
    told: dict[str, Any] = {
        "operationId": operation.does.__name__.strip("_"),
        "summary": operation.summary,
        "security": [] if operation.access == "open" else [{"token": []}],
        "responses": answers,
    }
    if parameters := [*_path_parameters(operation), *_query_parameters(operation)]:
        told["parameters"] = parameters
    if operation.body is not None:
        body = {"$ref": _REF.format(name=operation.body.__name__)}
        told["requestBody"] = {"required": True, "content": _content(body)}
    return told


def _path_parameters(operation: Operation) -> Iterator[dict[str, Any]]:
    for name in _PART.findall(operation.path):
        schema = {"type": "string", "pattern": ID_PATTERN}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(operation: Operation) -> Iterator[dict[str, Any]]:
    if operation.query is not None:
        told = msgspec.json.schema(operation.query)
        told = told["$defs"][operation.query.__name__]
        for name, schema in told["properties"].items():
            yield {"name": name, "in": "query", "required": False, "schema": schema}


def _answer(operation: Operation) -> dict[str, Any]:
    content = _content(_schema(operation))
    if operation.answer is None:
        content = {media: {"schema": {"type": "string"}} for media in operation.media}
    return {"description": HTTPStatus.OK.phrase, "content": content}


def _schema(operation: Operation) -> dict[str, Any]:
    if operation.answer is None:
        return {}
    (schema,), _ = msgspec.json.schema_components([operation.answer], ref_template=_REF)
    return schema


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
