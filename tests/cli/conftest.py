"""A command line in an empty directory, without any configuration of the machine."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from penstock import cli
from penstock.config import loading


class Result(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.status == 0, self.err
        return json.loads(self.out)


Penstock = Callable[..., Result]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PENSTOCK_CONFIG", raising=False)
    monkeypatch.setattr(loading, "FILES", loading.FILES[:1])
    return tmp_path


@pytest.fixture
def penstock(capsys: pytest.CaptureFixture[str]) -> Penstock:
    def run(*args: str) -> Result:
        status = cli.main(list(args))
        return Result(status, *capsys.readouterr())

    return run


@pytest.fixture
def jobs(directory: Path) -> str:
    """Two jobs that meet: on a resource of their own, a takes 22 s and b 13 s."""
    a = {"id": "a", "phases": [[6, 5], [6, 5]], "hints": {"profile": 11}}
    b = {"id": "b", "release": 1, "phases": [[9, 4]], "hints": {"profile": 13}}
    (directory / "jobs.json").write_text(json.dumps({"jobs": [a, b]}))
    return "jobs.json"
