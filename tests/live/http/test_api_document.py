"""Every field of every real answer is in the OpenAPI document, with the right type.

The document forbids additional properties, so a field that it lacks is an error; and all its
fields occur in a real answer, so that none is described in vain.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
from live.http.api_site import ADMIN, READER, WAIT, client, controlled, sharing_config, token_file

from penstock.live.http.api import OPERATIONS
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection

TURNS = messages.Turn | messages.Hold
ANSWERS = messages.JobAccepted | messages.Done | TURNS | messages.Heartbeat | messages.NodeMap


class Job:
    """A job that reports its phases."""

    def __init__(self, channel: ControlConnection) -> None:
        self._channel, self._phase = channel, 0
        begin = messages.BeginJob(name="test", pid=1, command=["solve"], user="ada", protocol=2)
        self.id = channel.ask(begin, messages.JobAccepted).job
        channel.send(messages.JobCounters(counters={"write_bytes": 1 << 20}))

    def begin_phase(self) -> None:
        """Begin a phase, and wait for the controller's answer."""
        self._phase += 1
        self._channel.send(messages.PhaseBegan(phase=self._phase))
        while not isinstance(self._channel.receive(ANSWERS, WAIT), TURNS):
            pass

    def end_phase(self) -> None:
        ended = messages.PhaseEnded(phase=self._phase, bytes=1 << 20, seconds=0.1, waited=0.0)
        self._channel.send(ended)


@contextmanager
def busy_site(folder: Path, **options: Any) -> Iterator[str]:
    """Yield the URL of a site with a job that transfers, one that waits, and one that ended."""
    with ExitStack() as stack:
        state, where = stack.enter_context(
            controlled(folder, config=sharing_config("enforce"), **options)
        )
        with ControlConnection(state.controller) as channel:
            ended = Job(channel)
            ended.begin_phase()
            ended.end_phase()
            channel.ask(messages.JobExit(status=0, counters={}), messages.Done)
        jobs = [Job(stack.enter_context(ControlConnection(state.controller))) for _ in range(2)]
        for _ in range(2):
            jobs[0].begin_phase()
            jobs[0].end_phase()
        for job in jobs:
            job.begin_phase()
        yield where


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A site whose API requires tokens."""
    folder = tmp_path_factory.mktemp("guarded")
    with busy_site(folder, token_file=str(token_file(folder))) as where:
        yield where


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A site whose API has no tokens."""
    with busy_site(tmp_path_factory.mktemp("local")) as where:
        yield where


@pytest.fixture(scope="module")
def document(local: str) -> dict[str, Any]:
    return dict(httpx.get(f"{local}/openapi.json", timeout=WAIT, trust_env=False).json())


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every schema inside a schema, itself included."""
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value)


def answer_schema(document: dict[str, Any], path: str, method: str = "get") -> dict[str, Any]:
    content = document["paths"][path][method]["responses"]["200"]["content"]
    return {**content["application/json"]["schema"], "components": document["components"]}


def reads() -> list[str]:
    return [o.path for o in OPERATIONS if o.method == "GET" and not o.media]


def test_every_type_is_closed_and_every_field_has_a_type(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        assert schema["additionalProperties"] is False, name
        for field, kind in schema["properties"].items():
            assert kind.keys() & {"type", "$ref", "anyOf", "enum"}, (name, field)
    for operation in OPERATIONS:
        method = operation.method.lower()
        if not operation.media and operation.path != "/openapi.json":
            schema = answer_schema(document, operation.path, method)
            assert schema.keys() & {"$ref", "items", "anyOf"}, operation.path


@pytest.mark.parametrize("path", [p for p in reads() if "what-if" not in p])
@pytest.mark.parametrize("token", [ADMIN, READER, None], ids=["admin", "reader", "anonymous"])
def test_real_answers_are_as_documented(
    guarded: str, local: str, document: dict[str, Any], path: str, token: str | None
) -> None:
    with client(local if token is None else guarded, token) as api:
        jobs = [job["id"] for job in api.get("/v1/jobs").json()]
        assert len(jobs) == 3
        for id in jobs if "{id}" in path else [""]:
            answer = api.get(path.replace("{id}", id))
            if token is None and path.endswith("/explain"):
                assert answer.status_code == 403
                continue
            assert answer.status_code == 200, answer.text
            jsonschema_rs.validate(answer_schema(document, path), answer.json())


def test_the_job_of_the_document_is_the_job_of_the_answer(
    guarded: str, document: dict[str, Any]
) -> None:
    """In both directions: all fields that are documented occur."""
    with client(guarded, ADMIN) as api:
        answers = api.get("/v1/jobs").json()
        assert {job["doing"] for job in answers} >= {"transferring", "waiting"}
        fields = set().union(*answers)
    assert fields == set(document["components"]["schemas"]["JobRecord"]["properties"])


def test_a_field_that_the_document_lacks_is_noticed(guarded: str, document: dict[str, Any]) -> None:
    with client(guarded, ADMIN) as api:
        answer = api.get("/v1/jobs").json()
    schema = answer_schema(document, "/v1/jobs")
    jsonschema_rs.validate(schema, answer)
    answer[0]["surprise"] = 1
    assert not jsonschema_rs.is_valid(schema, answer)


def test_changes_answer_as_documented(guarded: str, document: dict[str, Any]) -> None:
    with client(guarded, ADMIN) as api:
        for path, body in (("/v1/mode", {"mode": "observe"}), ("/v1/kill-switch", {"on": False})):
            answer = api.put(path, json=body)
            assert answer.status_code == 200, answer.text
            jsonschema_rs.validate(answer_schema(document, path, "put"), answer.json())


def test_the_timeline_has_jobs_samples_and_users(guarded: str, document: dict[str, Any]) -> None:
    """What is validated above is not an empty answer."""
    with client(guarded, ADMIN) as api:
        deadline = time.monotonic() + WAIT
        while not (timeline := api.get("/v1/timeline").json())["samples"]:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    jsonschema_rs.validate(answer_schema(document, "/v1/timeline"), timeline)
    assert all(timeline[name] for name in ("jobs", "stretches", "io_nodes", "users"))
