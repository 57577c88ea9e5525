"""Operations of the HTTP API, and the OpenAPI document made from their handlers' signatures.

A handler's return annotation is the answer in the document, its parameter `body` the request's
body, `query` the query string, and its docstring's first line the summary. Nothing is described a
second time, so the document cannot differ from what is answered.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from types import UnionType
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from starlette.responses import Response

Access = Literal["open", "read", "named", "admin"]
"""Who may: anybody; readers; any token; an admin's token."""
Method = Literal["GET", "PUT", "POST", "DELETE"]
Handler = Callable[..., Awaitable[Any]]
H = TypeVar("H", bound=Handler)
T = TypeVar("T")
ID_PATTERN = "^[A-Za-z0-9_.+-]{1,63}$"
_PATH_PARAMETER = re.compile(r"\{(\w+)\}")
_REF = "#/components/schemas/{name}"
_JSON = "application/json"
_REASONS = {
    304: "The client has the current version.",
    400: "The request is malformed.",
    401: "A token is required, and none or an unknown one was sent.",
    403: "The token's role does not allow this, or the API has no tokens and only reads.",
    404: "Not found.",
    408: "The body did not arrive in time.",
    409: "This conflicts with the present state.",
    413: "The body is too long.",
    415: "The body's content type is not JSON.",
    422: "The request is well-formed but invalid.",
    429: "Too many requests of this client, or of all, wait for their answer.",
    503: "The controller did not answer in time, or is not ready.",
}


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong, and what to do."""

    error: str
    hint: str


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """An answer of type T with a status code of its own, or one that is JSON already."""

    content: T | msgspec.Raw
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Operation:
    """One method of one path."""

    method: Method
    path: str
    access: Access
    handler: Handler
    fails: tuple[int, ...]
    media: tuple[str, ...]
    """The media types of a text; JSON has none."""
    unready: bool
    """Whether status 503 has the same content as status 200."""
    answer: Any
    """The type of the JSON answer; Response: text."""
    arguments: dict[str, Any]
    """The handler's parameters after `client`, by name, with their types."""

    @property
    def name(self) -> str:
        """The name of the handler's method."""
        return self.handler.__name__

    @property
    def body(self) -> Any:
        """The type of the request's body, or None."""
        return self.arguments.get("body")

    @property
    def query(self) -> Any:
        """The type of the query string, or None."""
        return self.arguments.get("query")

    @property
    def codes(self) -> list[int]:
        """The status codes of its failures."""
        codes = {*self.fails, 429, 503}
        if self.access != "open":
            codes |= {401, 403}
        if self.body is not None:
            codes |= {400, 408, 413, 415, 422}
        if self.query is not None:
            codes |= {422}
        return sorted(codes)


def operation(
    method: Method,
    path: str,
    *,
    access: Access = "read",
    fails: tuple[int, ...] = (),
    media: tuple[str, ...] = (),
    unready: bool = False,
) -> Callable[[H], H]:
    """Declare a method as the handler of an operation; its signature is the documentation."""

    def declare(handler: H) -> H:
        types = get_type_hints(handler, include_extras=True)
        answer = types.pop("return")
        names = list(inspect.signature(handler).parameters)[2:]  # after self and the client
        if missing := set(_PATH_PARAMETER.findall(path)).difference(names):
            raise TypeError(f"{handler.__qualname__} does not take {missing} of {path}")
        handler.operation = Operation(  # type: ignore[attr-defined]
            method=method,
            path=path,
            access=access,
            handler=handler,
            fails=fails,
            media=media,
            unready=unready,
            answer=get_args(answer)[0] if get_origin(answer) is Reply else answer,
            arguments={name: types[name] for name in names},
        )
        return handler

    return declare


def operations(handlers: type) -> tuple[Operation, ...]:
    """Return the operations that a class declares, in order."""
    members = vars(handlers).values()
    return tuple(member.operation for member in members if hasattr(member, "operation"))


def document(operations: Iterable[Operation], version: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of these operations."""
    operations = list(operations)
    types = [t for o in operations for t in (*_alternatives(o.answer), o.body) if t is not None]
    types = [*(t for t in types if t is not Response), Problem]
    generated, components = msgspec.json.schema_components(types, ref_template=_REF)
    schemas = dict(zip(map(str, types), generated, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _description(one, schemas)
    for component in components.values():
        if "properties" in component:  # an answer has the fields of its type and no others
            component["additionalProperties"] = False
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


def _alternatives(answer: Any) -> tuple[Any, ...]:
    """Return the types of an answer: for clients with a token, and for those without."""
    return get_args(answer) if get_origin(answer) is UnionType else (answer,)


def _description(one: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {media: {"schema": {"type": "string"}} for media in one.media}
    if not content:
        kinds = [schemas[str(kind)] for kind in _alternatives(one.answer)]
        content = {_JSON: {"schema": kinds[0] if len(kinds) == 1 else {"anyOf": kinds}}}
    problem = {_JSON: {"schema": {"$ref": _REF.format(name="Problem")}}}
    answers: dict[str, Any] = {"200": {"description": HTTPStatus.OK.phrase, "content": content}}
    for code in one.codes:
        same = one.unready and code == HTTPStatus.SERVICE_UNAVAILABLE
        answers[str(code)] = {
            "description": _REASONS[code],
            "content": content if same else problem,
        }
    if "request" in one.arguments:
        answers["304"] = {"description": _REASONS[304]}
    description: dict[str, Any] = {
        "operationId": one.name,
        "summary": inspect.cleandoc(one.handler.__doc__ or "").partition("\n")[0].rstrip("."),
        "security": [] if one.access == "open" else [{"token": []}],
        "responses": answers,
    }
    if parameters := [*_path_parameters(one), *_query_parameters(one)]:
        description["parameters"] = parameters
    if one.body is not None:
        body = {_JSON: {"schema": schemas[str(one.body)]}}
        description["requestBody"] = {"required": True, "content": body}
    return description


def _path_parameters(one: Operation) -> Iterator[dict[str, Any]]:
    for name in _PATH_PARAMETER.findall(one.path):
        schema = {"type": "string", "pattern": ID_PATTERN}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(one: Operation) -> Iterator[dict[str, Any]]:
    if one.query is not None:
        (component,) = msgspec.json.schema(one.query)["$defs"].values()
        for name, schema in component["properties"].items():
            yield {"name": name, "in": "query", "required": False, "schema": schema}
