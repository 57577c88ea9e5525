"""The commands, formats and code in README and docs work as written."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from penstock import config
from penstock.sim import traces
from penstock.sim.traces.jobs_file import read_jobs

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SLOW = {
    "penstock reproduce io-sets --out study",
    "penstock reproduce forwarding-policies --out forwarding",
    "penstock reproduce io-resources --out io-resources",
    "penstock reproduce packs --out packs",
    "penstock reproduce live-io-sets --out live",
    "penstock reproduce live-packs --out live-packs",
    "penstock reproduce detection --out detection",
    "penstock patterns measure --out seen.csv",
    "penstock reproduce tuning --out tuning",
    "penstock reproduce write-models --out write-models",
    "penstock tuner measure --out windows.csv",
}
"""Much work; tests/studies runs those studies in small."""
LOG = "run.darshan"
"""A log of the reader's own; here one of those that come with PyDarshan stands for it."""


def provide(directory: Path) -> None:
    """Put there what the commands need: the examples, and a log."""
    shutil.copytree(ROOT / "examples", directory / "examples")
    found = importlib.util.find_spec("darshan")
    if found is not None and found.origin is not None:
        logs = Path(found.origin).parent.rglob("sample-badost.darshan")
        shutil.copy(next(iter(logs)), directory / LOG)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


def commands(page: Path) -> list[str]:
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    return [re.sub(r"\s+#.*", "", line[2:]) for line in lines if line.startswith("$ ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands(page: Path, tmp_path: Path) -> None:
    provide(tmp_path)
    for command in commands(page):
        if command in SLOW:
            continue
        program = command.replace("penstock", f"{sys.executable} -m penstock.cli", 1)
        result = subprocess.run(
            program,
            shell=True,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert result.returncode == 0, f"{command}\n{result.stderr}"
        assert result.stdout, command


def test_there_are_commands_to_test() -> None:
    assert sum(len(commands(page)) for page in PAGES) >= 8


def test_the_slow_ones_are_still_there() -> None:
    assert {command for page in PAGES for command in commands(page)} >= SLOW


def test_the_json_example_is_a_workload(tmp_path: Path) -> None:
    (example,) = blocks(ROOT / "docs" / "workload-files.md", "json")
    (tmp_path / "jobs.json").write_text(example)
    workload = traces.read(tmp_path / "jobs.json")
    assert workload.ids == ["climate", "genome"]
    assert workload.compute[3] == 300.0


def test_the_jobs_never_run_get_curves(tmp_path: Path) -> None:
    (example,) = blocks(ROOT / "docs" / "predict.md", "json")
    (tmp_path / "jobs.json").write_text(example)
    jobs = read_jobs(tmp_path / "jobs.json")
    assert [job.id for job in jobs if job.curve is not None] == ["climate", "genome"]


def test_the_toml_example_is_a_configuration(tmp_path: Path) -> None:
    (example,) = blocks(ROOT / "docs" / "configuration.md", "toml")
    (tmp_path / "penstock.toml").write_text(example)
    loaded = config.load(tmp_path / "penstock.toml", environment={})
    assert loaded.config.site.site().bandwidth == 2 * 2**30


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_examples_run(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for code in blocks(page, "python"):
        result = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=False
        )
        assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target
