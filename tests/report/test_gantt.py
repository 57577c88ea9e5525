"""The Gantt: what it shows, and that any run can be drawn."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from strategies import Case, cases, examples

from penstock import registry
from penstock.errors import InputError
from penstock.report import gantt
from penstock.sim import generators
from penstock.sim.engine import simulate
from penstock.sim.run import Run
from penstock.sim.workload import Workload


@pytest.fixture(scope="module")
def run() -> Run:
    workload = generators.PRESETS["io-sets"].make(jobs=90, seed=1, horizon=2000.0)
    return simulate(workload, registry.sharing("set-10"), timeline=True)


def test_the_default_span_shows_single_phases_of_some_jobs(tmp_path: Path, run: Run) -> None:
    seen = gantt.draw(run, tmp_path / "g.png", title="set-10", window=(600.0, 1400.0))
    assert seen.startswith("600 to 800 s, 60 of 90 jobs, those that do I/O then")
    assert "--plot-window" in seen
    assert [path.name for path in tmp_path.iterdir()] == ["g.png"]


def test_a_chosen_span_is_kept(tmp_path: Path, run: Run) -> None:
    seen = gantt.draw(run, tmp_path / "g.png", title="set-10", span=(10.0, 15.5))
    assert seen.startswith("10 to 15.5 s, ")


def test_a_span_in_which_nothing_runs(tmp_path: Path, run: Run) -> None:
    with pytest.raises(InputError, match="no job runs between 90000 and 90001 s"):
        gantt.draw(run, tmp_path / "g.png", title="set-10", span=(90_000.0, 90_001.0))
    assert list(tmp_path.iterdir()) == []


def test_a_job_that_only_computes_is_drawn_when_there_is_no_other(tmp_path: Path) -> None:
    # As a formula this would not parse; names are not formulas.
    name = r"$\frac$"
    workload = Workload(compute=[5.0], io=[0.0], offsets=[0, 1], release=[0.0], ids=[name])
    run = simulate(workload, registry.sharing("fair-share"), timeline=True)
    seen = gantt.draw(run, tmp_path / "g.svg", title=name, window=(0.0, 5.0))
    assert "1 of 1 jobs" in seen


@settings(examples(5), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_any_run_can_be_drawn(tmp_path: Path, case: Case) -> None:
    sharing = registry.sharing("exclusive-fcfs")
    run = simulate(case.workload, sharing, site=case.site, timeline=True)
    path = tmp_path / "g.png"
    path.unlink(missing_ok=True)  # of the example before
    seen = gantt.draw(run, path, title="any", window=(0.0, run.makespan))
    assert re.match(rf"0 to \S+ s, [1-9]\d* of {len(case.workload)} jobs", seen)
    assert path.read_bytes().startswith(b"\x89PNG")
