"""Generated requests get only answers that the OpenAPI document describes."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings, strategies
from live.http.api_site import (
    ADMIN,
    WAIT,
    FakeService,
    bearing,
    controlled,
    running_job,
    served,
    token_file,
)
from schemathesis import GenerationMode

from penstock.live.http.api import OPERATIONS, Api
from penstock.live.http.openapi import Operation
from penstock.live.protocol.tokens import Tokens

JOB = "test.1"
"""The job that exists; generated ids are other ones."""


@pytest.fixture(scope="module", params=["fake", "real"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an API with a job, of a fake controller or a real one."""
    folder = tmp_path_factory.mktemp("site")
    path = token_file(folder)
    with ExitStack() as stack:
        if request.param == "fake":
            service = FakeService()
            service.listed[0] = msgspec.structs.replace(service.listed[0], id=JOB)
            yield stack.enter_context(served(Api(service, tokens=Tokens.read(path))))
        else:
            state, where = stack.enter_context(controlled(folder, token_file=str(path)))
            assert stack.enter_context(running_job(state, write_bytes=5)) == JOB
            yield where


@pytest.fixture(scope="module")
def document(site: str) -> Any:
    return schemathesis.openapi.from_url(f"{site}/openapi.json", timeout=WAIT)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: f"{o.method} {o.path}")
@pytest.mark.parametrize("mode", GenerationMode, ids=lambda m: m.value)
def test_answers_are_as_documented(
    document: Any, operation: Operation, mode: GenerationMode
) -> None:
    """No 5xx, no status, type or body that is not in the document, no wrong input accepted."""
    described = document[operation.path][operation.method]
    takes_text = operation.query is not None or "{" in operation.path
    takes_input = operation.body is not None or takes_text
    if mode is GenerationMode.NEGATIVE and not takes_input:
        return  # there is no input

    @settings(
        max_examples=50 if operation.body is not None else 12 if takes_text else 3,
        deadline=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=described.as_strategy(generation_mode=mode), existing=strategies.booleans())
    def holds(case: schemathesis.Case[Any], existing: bool) -> None:
        if existing and case.path_parameters and mode is GenerationMode.POSITIVE:
            case.path_parameters["id"] = JOB
        case.call_and_validate(headers=bearing(ADMIN), timeout=WAIT)

    holds()
