"""`--on` and `--out`, as a user meets them without any cluster."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.campaign import executors
from penstock.campaign.policy_file import policy_files
from penstock.errors import InputError
from penstock.sim.evaluate import policy_runs

MINE = """
from penstock.policies.base import ByArrival
class Mine(ByArrival):
    def group(self, job):
        return {group}
"""


def cells(directory: Path) -> int:
    return (directory / "cells.jsonl").read_text().count("\n") - 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--on", "slurmm"), "--on: 'slurmm' names no workers; use local, slurm, tcp://"),
        (("--on", "tcp://head"), "'tcp://head' names no workers"),
        (("--on", "none.json"), "--on: there is no file 'none.json'"),
        (("--on", "jobs.json"), "jobs.json is not a Dask scheduler file"),
        (("--on", "slurm", "--jobs", "2"), "--jobs are cores of this machine"),
    ],
)
def test_places_that_cannot_be_are_refused(
    penstock: Any, jobs: str, words: tuple[str, ...], message: str
) -> None:
    for verb in (("compare", jobs), ("reproduce", "sharing-policies", "--out", "x")):
        result = penstock(*verb, *words)
        assert result.status == 2
        assert message in result.err
    assert not Path("x").exists()


def test_without_dask_its_extra_is_named(
    penstock: Any, jobs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "find_spec", lambda name: None)
    result = penstock("compare", jobs, "--on", "tcp://head:8786")
    assert result.status == 2
    assert (
        "needs distributed: install the extra 'dask', in a checkout pip install '.[dask]'"
        in result.err
    )


def test_slurm_is_looked_for_before_anything_is_done(
    penstock: Any, jobs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    result = penstock("compare", jobs, "--on", "slurm")
    assert result.status == 2
    assert "there is no sbatch here" in result.err


def test_a_comparison_goes_on_from_what_is_kept(penstock: Any, jobs: str, directory: Path) -> None:
    penstock("generate", "io-sets", "--jobs", "6", "--horizon", "200", "--out", "b.npz")
    (directory / "mine.py").write_text(MINE.format(group="'all'"))
    kept = ("--out", "kept", "--json")
    first = penstock("compare", jobs, "--policies", "fair-share,set-10", *kept).json
    assert cells(directory / "kept") == 2
    assert penstock("compare", jobs, "--policies", "fair-share,set-10", *kept).json == first
    assert cells(directory / "kept") == 2
    wanted = ("compare", jobs, "b.npz", "--policies", "fair-share,set-10,./mine.py:Mine")
    more = penstock(*wanted, *kept).json
    assert cells(directory / "kept") == 6
    assert more == penstock(*wanted, "--json").json == penstock(*wanted, *kept, "--jobs", "1").json
    assert json.loads((directory / "kept" / "comparison.json").read_text()) == more
    assert (directory / "kept" / "results.csv").read_text().count("\n") == 1 + 6
    # What has changed is run again: the policy's file, then an option of all.
    (directory / "mine.py").write_text(MINE.format(group="job.id"))
    changed = penstock(*wanted, *kept).json
    assert cells(directory / "kept") == 8
    assert changed["policies"]["fair-share"] == more["policies"]["fair-share"]
    assert changed["policies"]["./mine.py:Mine"] != more["policies"]["./mine.py:Mine"]
    penstock(*wanted, *kept, "--window", "1:9")
    assert cells(directory / "kept") == 14


@pytest.mark.parametrize(
    "how",
    [
        "import base_rule",
        "from base_rule import GROUP",
        "from rules import base_rule",
        "import importlib\nGROUP = importlib.import_module('base_rule').GROUP",
        "def later():\n    import base_rule",
    ],
)
def test_a_policy_that_imports_files_of_ones_own_is_not_kept(
    penstock: Any, jobs: str, directory: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A change of base_rule.py would go unseen, and old figures be shown for the new rule."""
    monkeypatch.syspath_prepend(directory)
    (directory / "rules").mkdir()
    for folder in (directory, directory / "rules"):
        (folder / "base_rule.py").write_text("GROUP = 'all'\n")
    (directory / "mine.py").write_text(f"import numpy, json\n{how}\n{MINE.format(group='1')}")
    wanted = ("compare", jobs, "--policies", "./mine.py:Mine")
    try:
        assert penstock(*wanted).status == 0, "without --out no old figures are shown"
        for words in (("--out", "kept"), ("--on", "tcp://127.0.0.1:1")):
            result = penstock(*wanted, *words)
            assert result.status == 2
            assert "a policy is one file; it imports base_rule.py" in result.err
        assert not (directory / "kept").exists()
    finally:
        for name in ("base_rule", "rules", "rules.base_rule"):
            sys.modules.pop(name, None)


DEADLY = """
import multiprocessing, os
from pathlib import Path
from penstock.policies.base import ByArrival
class Mine(ByArrival):
    def turn(self, request, view):
        return 0.0
    def group(self, job):
        mark = Path(__file__).with_name("mark")
        if not mark.exists() and multiprocessing.parent_process() is not None:
            mark.touch()
            os._exit(1)
        return 'all'
"""


@pytest.mark.parametrize("words", [(), ("--out", "kept")])
def test_what_a_dead_process_of_this_machine_was_at_is_simulated_again(
    penstock: Any,
    jobs: str,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    monkeypatch.setattr(policy_runs, "PROCESSES_PAY", 0)
    (directory / "mine.py").write_text(DEADLY)
    wanted = ("compare", jobs, "--policies", "exclusive-fcfs,./mine.py:Mine", "--jobs", "2")
    result = penstock(*wanted, "--json", *words)
    assert result.status == 0
    assert (directory / "mark").exists()
    assert "a worker process died; its cells are run again, 1 at a time" in result.err
    policies = result.json["policies"]
    assert policies["./mine.py:Mine"] == policies["exclusive-fcfs"]


def test_a_figure_without_a_value_is_kept_as_such(penstock: Any, directory: Path) -> None:
    """A job without I/O in the window has no slowdown."""
    job = {"id": "a", "phases": [[6, 5]], "hints": {"profile": 11}}
    (directory / "one.json").write_text(json.dumps({"jobs": [job]}))
    words = ("compare", "one.json", "--policies", "set-10", "--window", "1:5", "--json")
    alone = penstock(*words).json
    assert alone["policies"]["set-10"]["io_slowdown"] is None
    assert penstock(*words, "--out", "kept").json == alone
    assert penstock(*words, "--out", "kept").json == alone


def test_results_of_a_study_are_no_comparison(penstock: Any, jobs: str, directory: Path) -> None:
    (directory / "study").mkdir()
    header = b'{"study":"io-sets","version":1,"size":"fast","seed":0,"penstock":"0.1.0"}\n'
    (directory / "study" / "cells.jsonl").write_bytes(header)
    result = penstock("compare", jobs, "--out", "study")
    assert result.status == 2
    assert "belongs to another run (it has study io-sets" in result.err
    assert (directory / "study" / "cells.jsonl").read_bytes() == header


def test_a_worker_must_see_the_same_policy_file(directory: Path) -> None:
    file = directory / "mine.py"
    file.write_text(MINE)
    (matches,) = policy_files(["./mine.py:Mine", "set-10"]).values()
    matches.check()
    assert matches.name == f"{file}:Mine"
    file.write_text(MINE + "\n")
    with pytest.raises(InputError, match=r"has another policy file .*mine\.py; put it where all"):
        matches.check()
    file.unlink()
    with pytest.raises(InputError, match=r"cannot read the policy file .*put it where all"):
        matches.check()
