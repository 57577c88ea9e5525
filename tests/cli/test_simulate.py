"""penstock simulate: the figures of a run worked out by hand, and what it writes."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from penstock.sim import engine

NAMES = {"utilization", "max_stretch", "io_slowdown", "min_yield", "efficiency", "makespan"}
NAMES |= {"utilization_bound", "window", "policy", "jobs", "iterations", "events", "engine_seconds"}


def test_exclusive_by_hand(penstock: Any, jobs: str) -> None:
    # a: I/O from 6 to 11, and 17 to 22. b asks at 10, waits for a until 11, ends at 15.
    result = penstock("simulate", jobs, "--policy", "exclusive-fcfs", "--jobs", "--json").json
    assert result.keys() >= NAMES
    assert result["makespan"] == 22
    assert result["max_stretch"] == pytest.approx(14 / 13)
    assert result["min_yield"] == pytest.approx(13 / 14)
    assert result["utilization"] == pytest.approx((12 + 9) / (22 + 14))
    assert result["efficiency"] == pytest.approx((22 + 13) / (22 + 14))
    assert result["io_slowdown"] == pytest.approx((10 / 10 * 5 / 4) ** 0.5)
    assert (result["jobs"], result["iterations"], result["events"]) == (2, 3, 6)
    assert result["window"] == [0, 22]
    a, b = result["per_job"]
    assert (a["job"], a["waiting"], a["stretch"]) == ("a", 0, 1)
    assert (b["job"], b["waiting"]) == ("b", 1)


def test_fair_share_by_hand(penstock: Any, jobs: str) -> None:
    # From 10 on both have half: a's last second of I/O takes two, until 12; b has 3 s left then.
    result = penstock("simulate", jobs, "--policy", "fair-share", "--jobs", "--json").json
    assert [job["finish"] for job in result["per_job"]] == [23, 15]


def test_the_reference_gives_the_same(penstock: Any, jobs: str) -> None:
    native = penstock("simulate", jobs, "--policy", "set-10", "--json").json
    slow = penstock("simulate", jobs, "--policy", "set-10", "--reference", "--json").json
    assert (native.pop("engine"), slow.pop("engine")) == ("native", "reference")
    del native["engine_seconds"], slow["engine_seconds"]
    assert native == slow


def test_as_live_bounds_the_wait(penstock: Any, jobs: str) -> None:
    """b asks at 10 and waits for a until 11; released at 10.4, each has a half until a ends.

    a has 0.6 s left then: it ends at 11.6, b with 3.4 s left at 15. The second phase of a begins
    0.6 s later than else.
    """
    arguments = ("simulate", jobs, "--policy", "exclusive-fcfs", "--as-live", "--jobs")
    bounds = ("--set", "live.max-wait=0.4", "--set", "live.fair-users=false")
    result = penstock(*arguments, *bounds, "--json").json
    assert (result["released"], result["engine"]) == (1, "reference")
    assert result["as_live"]["max_wait"] == 0.4
    assert [job["finish"] for job in result["per_job"]] == pytest.approx([22.6, 15.0])
    out = penstock(*arguments, *bounds).out
    assert "as live: no phase waits longer than 0.4 s, users are not told apart" in out
    assert "as live" not in penstock("simulate", jobs).out


def test_the_window_cuts(penstock: Any, jobs: str) -> None:
    arguments = ("simulate", jobs, "--policy", "exclusive-fcfs", "--window", "0:6 s", "--json")
    result = penstock(*arguments).json
    assert result["window"] == [0, 6]
    assert result["utilization"] == 1


def test_the_policy_is_the_configuration_s_by_default(
    penstock: Any, jobs: str, directory: Path
) -> None:
    (directory / "penstock.toml").write_text('[sharing]\npolicy = "greedy-com"\n')
    assert penstock("simulate", jobs, "--json").json["policy"] == "greedy-com"
    assert penstock("simulate", jobs, "--policy", "fair-share", "--json").json["policy"] == (
        "fair-share"
    )


def test_a_policy_from_a_file(penstock: Any, jobs: str, directory: Path) -> None:
    (directory / "mine.py").write_text(
        "from penstock.policies.base import ByArrival\n"
        "class Mine(ByArrival):\n"
        "    def group(self, job):\n"
        "        return 'all'\n"
    )
    mine = penstock("simulate", jobs, "--policy", "./mine.py:Mine", "--json").json
    assert mine["makespan"] == 22


def test_knowledge_changes_what_set_10_does(penstock: Any) -> None:
    penstock("generate", "io-sets", "--jobs", "12", "--horizon", "3000", "--out", "w.json")
    arguments = ("simulate", "w.json", "--policy", "set-10", "--json")
    exact = penstock(*arguments).json["io_slowdown"]
    learned = penstock(*arguments, "--knowledge", "learned").json["io_slowdown"]
    noisy = penstock(*arguments, "--knowledge", "noisy:1", "--seed", "3").json["io_slowdown"]
    again = penstock(*arguments, "--knowledge", "noisy:1", "--seed", "3").json["io_slowdown"]
    assert len({exact, learned, noisy}) == 3
    assert noisy == again


def test_repeat_times_this_number_of_engine_runs(
    penstock: Any, jobs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def simulate(*args: Any, **how: Any) -> Any:
        calls.append(how["timeline"])
        return original(*args, **how)

    original = engine.simulate
    monkeypatch.setattr(engine, "simulate", simulate)
    result = penstock("simulate", jobs, "--repeat", "5", "--timeline", "t.csv", "--json").json
    assert calls == [False] * 5 + [True]
    assert result["repeat"] == 5
    assert result["engine_seconds"] > 0


def test_the_timeline_is_all_the_io_there_is(penstock: Any, jobs: str, directory: Path) -> None:
    penstock("simulate", jobs, "--policy", "fair-share", "--timeline", "t.csv")
    with (directory / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["job", "resource", "start", "end", "share"]
    for job, io in (("a", 10), ("b", 4)):
        done = [
            (float(r["end"]) - float(r["start"])) * float(r["share"])
            for r in rows
            if r["job"] == job
        ]
        assert sum(done) == pytest.approx(io)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_plot(penstock: Any, jobs: str, directory: Path, suffix: str) -> None:
    result = penstock("simulate", jobs, "--plot", f"g{suffix}", "--plot-window", "0:30")
    assert f"g{suffix}: 0 to 30 s, 2 of 2 jobs" in result.out
    heads = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    assert (directory / f"g{suffix}").read_bytes().startswith(heads[suffix])


def test_a_volume_needs_the_site(penstock: Any, directory: Path) -> None:
    job = {"id": "a", "phases": [["1 min", "12 GiB"]]}
    (directory / "w.json").write_text(json.dumps({"jobs": [job]}))
    assert penstock("simulate", "w.json").status == 2
    result = penstock("simulate", "w.json", "--set", "site.bandwidth=2 GiB/s", "--json")
    assert result.json["makespan"] == 66


def test_swf(penstock: Any, directory: Path) -> None:
    fields = [1, 0, 30, 100, 4, *[-1] * 5, 1, 7, *[-1] * 6]
    (directory / "w.swf").write_text("; Version: 2.2\n" + " ".join(map(str, fields)) + "\n")
    arguments = ("simulate", "w.swf", "--io-ratio", "0.25", "--w-iter", "20 s", "--json")
    result = penstock(*arguments).json
    assert result["iterations"] == 5
    assert result["makespan"] == pytest.approx(130)
    assert result["utilization"] == pytest.approx(0.75)


def test_for_people(penstock: Any, jobs: str) -> None:
    result = penstock("simulate", jobs, "--policy", "exclusive-fcfs", "--jobs")
    assert "exclusive-fcfs on jobs.json: 2 jobs, 3 iterations" in result.out
    assert "utilization" in result.out
    assert result.out.index("\nb ") < result.out.index("\na "), "the worst job comes first"
    assert result.err == ""


def test_many_jobs_are_cut_short_for_people_only(penstock: Any) -> None:
    penstock("generate", "io-sets", "--jobs", "50", "--horizon", "100", "--out", "w.npz")
    assert "... and 10 more jobs" in penstock("simulate", "w.npz", "--jobs").out
    assert len(penstock("simulate", "w.npz", "--jobs", "--json").json["per_job"]) == 50


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("def turn(self, request, view): return 1 / 0", "ZeroDivisionError: division by zero"),
        ("def turn(self, request, view): return 'first'", "turn() must return a number"),
    ],
)
@pytest.mark.parametrize("verb", [("simulate", "--policy"), ("compare", "--policies")])
def test_what_a_policy_of_ones_own_raises(
    penstock: Any, directory: Path, verb: tuple[str, str], method: str, message: str
) -> None:
    (directory / "mine.py").write_text(
        "from penstock.policies.base import ByArrival\n"
        "class Mine(ByArrival):\n"
        "    def group(self, job): return 'all'\n"
        f"    {method}\n"
    )
    jobs = '[{"phases": [[1, 5]]}, {"phases": [[2, 5]]}, {"phases": [[3, 5]]}]'
    (directory / "jobs.json").write_text(f'{{"jobs": {jobs}}}')
    name, flag = verb
    result = penstock(name, "jobs.json", flag, "mine.py:Mine")
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
    assert "policy 'mine.py:Mine' failed" in result.err
    assert message in result.err


@pytest.mark.parametrize("weight", ["None", "0", "-1.0", "float('nan')", "'much'"])
def test_what_a_policy_of_ones_own_answers_is_checked(
    penstock: Any, directory: Path, jobs: str, weight: str
) -> None:
    (directory / "mine.py").write_text(
        "from penstock.policies.base import ByArrival\n"
        "class Mine(ByArrival):\n"
        "    def group(self, job): return 'all'\n"
        f"    def weight(self, job): return {weight}\n"
    )
    for flag in ([], ["--reference"]):
        result = penstock("simulate", jobs, "--policy", "mine.py:Mine", *flag)
        assert result.status == 2
        assert "Mine: weight() of job 'a' is" in result.err


def test_outputs_never_replace_the_workload_or_each_other(penstock: Any, jobs: str) -> None:
    before = Path(jobs).read_bytes()
    for args in (("--timeline", jobs), ("--timeline", "a.png", "--plot", "./a.png")):
        result = penstock("simulate", jobs, *args)
        assert (result.status, result.err.count("\n")) == (2, 1)
        assert "three different files" in result.err
    assert Path(jobs).read_bytes() == before
    assert not Path("a.png").exists()


def test_brackets_in_a_name_are_text(penstock: Any, directory: Path) -> None:
    (directory / "odd.json").write_text('{"jobs": [{"id": "[/bold]", "phases": [[1, 1]]}]}')
    assert "[/bold]" in penstock("simulate", "odd.json", "--jobs").out


def test_resources_are_divided_while_jobs_run(penstock: Any, directory: Path) -> None:
    """b needs a node of its own, so a goes from four to two of the four, and back."""
    curve = {"1": 1, "2": 2, "4": 4}
    a = {"id": "a", "curve": curve, "phases": [[0, 4]] * 10}
    b = {"id": "b", "release": 4, "curve": {"1": 1}, "phases": [[0, 2]]}
    (directory / "w.json").write_text(json.dumps({"jobs": [a, b]}))
    site = ("--set", "site.resources=4", "--json", "--jobs")
    alone = penstock("simulate", "w.json", *site).json
    assert alone["makespan"] == 42  # both on resource 0, as nobody allocates
    assert "remaps" not in alone
    answer = penstock("simulate", "w.json", "--allocation", "mckp", *site).json
    assert answer["remaps"] == 2
    # A phase of 4 isolated seconds takes a 1 s on four nodes and 2 s on two; b is there from 4 to
    # 6 s, so that one of a's ten phases takes twice as long.
    assert answer["makespan"] == 11
    late = penstock("simulate", "w.json", "--allocation", "mckp", "--remap-delay", "1 h", *site)
    assert late.json["remaps"] == 0


def test_a_policy_that_needs_curves_says_so(penstock: Any, jobs: str) -> None:
    result = penstock("simulate", jobs, "--allocation", "n-sys")
    assert result.status == 2
    assert "job 'a' has no curve" in result.err


def test_policies_that_are_not_used_are_not_loaded(
    penstock: Any, jobs: str, directory: Path
) -> None:
    """A broken tuning policy is no reason not to simulate; `config show` reports it."""
    (directory / "broken.py").write_text("raise RuntimeError('never imported')")
    (directory / "penstock.toml").write_text('[tuning]\npolicy = "./broken.py:Broken"\n')
    assert penstock("simulate", jobs, "--json").status == 0
    shown = penstock("config", "show")
    assert shown.status == 2
    assert "penstock.toml: policy file './broken.py' cannot be loaded" in shown.err
