"""penstock what-if: other policies beside what was recorded, and replays."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from records.random_days import RecordedClock, header, write

from penstock import cli
from penstock.model import Job, JobStarted, PhaseBegan, PhaseEnded, Site, Woke
from penstock.records import Entry
from penstock.sim.workload import Workload

METRICS = ("utilization", "max_stretch", "io_slowdown", "min_yield", "efficiency", "makespan")


def workload() -> Workload:
    """Five jobs whose phases meet all the time, three of them often."""
    jobs = [(3.0, 2.0, 12), (4.0, 2.5, 10), (3.5, 1.5, 12), (30.0, 12.0, 2), (25.0, 15.0, 2)]
    counts = [count for *_, count in jobs]
    return Workload(
        compute=[compute for compute, _, count in jobs for _ in range(count)],
        io=[io for _, io, count in jobs for _ in range(count)],
        offsets=[sum(counts[:j]) for j in range(len(jobs) + 1)],
        release=[0.0, 0.5, 1.0, 1.5, 2.0],
        ids=[f"job-{j}" for j in range(len(jobs))],
    )


def recorded(directory: Path, policy: str = "fair-share", **more: Any) -> Path:
    made = header(policy, site=Site(), **more)
    clock = RecordedClock(workload(), made)
    clock.run()
    (path,) = write(directory / "records", made, clock.entries)
    return path


def test_policies_stand_beside_what_was_recorded(penstock: Any, directory: Path) -> None:
    path = recorded(directory)
    chosen = ("--policies", "set-10,fair-share,greedy-yield", "--json")
    result = penstock("what-if", str(path), *chosen).json
    assert set(result["simulated"]) == {"set-10", "fair-share", "greedy-yield"}
    alone = penstock("compare", str(path), *chosen).json["policies"]
    for policy, figures in result["simulated"].items():
        assert {m: figures[m] for m in METRICS} == {m: alone[policy][m] for m in METRICS}
        assert figures["gain"]["utilization"] == pytest.approx(
            figures["utilization"] / result["recorded"]["utilization"] - 1
        )
    # It was recorded under fair-share, so simulating that again changes nothing.
    for metric in METRICS:
        assert result["recorded"][metric] == pytest.approx(
            result["simulated"]["fair-share"][metric], rel=1e-9
        )
    assert result["simulated"]["fair-share"]["jobs"] == {"gain": [], "lose": []}
    assert result["record"]["policy"] == "fair-share"
    assert result["record"]["jobs"] == 5


def test_who_gains_and_loses_most(penstock: Any, directory: Path) -> None:
    path = recorded(directory)
    result = penstock("what-if", str(path), "--policies", "exclusive-fcfs", "--json").json
    jobs = result["simulated"]["exclusive-fcfs"]["jobs"]
    assert jobs["lose"]
    for job in jobs["lose"] + jobs["gain"]:
        assert job["change"] == pytest.approx(job["simulated"] / job["recorded"] - 1)
    lost = [job["change"] for job in jobs["lose"]]
    assert lost == sorted(lost, reverse=True)
    assert min(lost) > 0
    assert all(job["change"] < 0 for job in jobs["gain"])
    simulated = penstock(
        "simulate", str(path), "--policy", "exclusive-fcfs", "--jobs", "--json"
    ).json
    assert simulated["makespan"] == result["simulated"]["exclusive-fcfs"]["makespan"]


def test_people_are_told_what_is_simulated(penstock: Any, directory: Path) -> None:
    out = penstock("what-if", str(recorded(directory)), "--policies", "set-10,fair-share").out
    rows = {line.split("  ")[0].strip() for line in out.splitlines()}
    assert {"recorded", "set-10, simulated", "fair-share, simulated"} <= rows
    assert "set-10: " in out
    assert "fair-share: no job gains or loses" in out


def test_all_policies_that_the_record_can_feed(penstock: Any, directory: Path) -> None:
    result = penstock("what-if", str(recorded(directory)), "--json").json
    assert "set-10" in result["simulated"]
    assert [entry["policy"] for entry in result["skipped"]] == ["clairvoyant-sets"]


def test_policies_know_what_the_recorded_ones_did(penstock: Any, directory: Path) -> None:
    path = recorded(directory, "set-10", learn={})
    arguments = ("what-if", str(path), "--policies", "set-10", "--json")
    learned = penstock(*arguments).json
    assert learned["record"]["knowledge"] == "learned"
    exact = penstock(*arguments, "--knowledge", "exact").json
    assert exact["record"]["knowledge"] == "exact"
    assert exact["simulated"] != learned["simulated"]


def test_the_window_counts_for_both(penstock: Any, directory: Path) -> None:
    arguments = ("what-if", str(recorded(directory)), "--policies", "set-10", "--json")
    result = penstock(*arguments, "--window", "20:60").json
    assert result["recorded"]["window"] == result["simulated"]["set-10"]["window"] == [20, 60]
    assert result["recorded"]["utilization"] != penstock(*arguments).json["recorded"]["utilization"]


def test_what_was_cut_is_told(penstock: Any, directory: Path) -> None:
    job = Job(id="a", serial=0)
    events = [
        JobStarted(time=0.0, job=job),
        PhaseBegan(time=1.0, job="a", resources=(0,)),
        PhaseEnded(time=3.0, job="a", resource=0, io=1.0),
        Woke(time=9.0),
    ]
    (path,) = write(directory / "r", header(), [Entry(event=event) for event in events])
    with path.open("ab") as file:
        file.write(b'{"event":"Wo')
    out = penstock("what-if", str(path), "--policies", "fair-share").out
    assert "note: 1 job still ran when the record ended" in out
    assert "line 6 breaks off" in out


def test_check_proves_that_decisions_repeat(penstock: Any, directory: Path) -> None:
    path = recorded(directory, "set-10", learn={})
    answer = penstock("what-if", str(path), "--check")
    assert (answer.status, answer.out.endswith("same decisions\n")) == (0, True)
    assert penstock("what-if", str(path), "--check", "--json").json["same"] is True


def test_check_shows_the_first_difference_and_fails(penstock: Any, directory: Path) -> None:
    path = recorded(directory, "set-10")
    wrong = directory / "wrong.jsonl.gz"
    lines = path.read_bytes().replace(b'"resource":0,"weight":0.1', b'"resource":0,"weight":0.5')
    wrong.write_bytes(gzip.compress(lines))
    answer = penstock("what-if", str(wrong), "--check")
    assert answer.status == 1
    assert "wrong.jsonl.gz, line 7" in answer.out
    assert "weight=0.5" in answer.out
    assert "weight=0.1" in answer.out
    again = penstock("what-if", str(wrong), "--check", "--json")
    assert again.status == 1
    assert json.loads(again.out)["first_difference"]["where"].endswith("line 7")


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("missing.jsonl",), "no such file"),
        (("jobs.json",), "ends in none of .jsonl, .jsonl.gz"),
        (("record.jsonl", "--policies", "set-11"), "did you mean 'set-10'"),
        (("record.jsonl", "--check", "--policies", "set-10"), "leave out --policies"),
        (("record.jsonl", "--policies", "set-10", "--window", "1e8:2e8"), "choose another window"),
        (("record.jsonl", "record.jsonl"), "does not follow"),
        (("bad.jsonl",), "bad.jsonl, line 1 is not the header"),
    ],
)
def test_wrong_input_is_one_line(
    penstock: Any, jobs: str, directory: Path, arguments: tuple[str, ...], answer: str
) -> None:
    recorded(directory).rename(directory / "record.jsonl")
    (directory / "bad.jsonl").write_text("{}\n")
    result = penstock("what-if", *arguments)
    assert result.status == 2
    assert answer in result.err
    assert result.err.count("\n") == 1


def test_a_directory_stands_for_its_last_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = (Path(__file__).parents[2] / "examples" / "record.jsonl").read_bytes()
    (tmp_path / "record-20260101-000000-aaaa-0001.jsonl").write_bytes(b"an older run\n")
    (tmp_path / "record-20260102-000000-bbbb-0001.jsonl").write_bytes(record)
    assert cli.main(["what-if", str(tmp_path), "--policies", "fair-share"]) == 0
    assert "recorded" in capsys.readouterr().out
    assert cli.main(["what-if", str(tmp_path / "none")]) == 2
    (tmp_path / "empty").mkdir()
    assert cli.main(["what-if", str(tmp_path / "empty")]) == 2
    assert "has no records" in capsys.readouterr().err


def test_a_policy_file_is_trusted_by_the_name_that_is_typed(
    penstock: Any, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records have the file's path from the root on; people name it from where they are."""
    (directory / "mine.py").write_text(
        "from penstock.policies.sharing.exclusive_fcfs import ExclusiveFcfs\n"
        "class Mine(ExclusiveFcfs): ...\n"
    )
    path = str(recorded(directory, f"{directory / 'mine.py'}:Mine"))
    monkeypatch.chdir(directory)
    assert penstock("what-if", path, "--check").status == 2
    assert penstock("what-if", path, "--check", "--trust", "./other.py:Mine").status == 2
    assert penstock("what-if", path, "--check", "--trust", "./mine.py:Mine").status == 0


def test_as_live_bounds_waits_here_too(penstock: Any, directory: Path) -> None:
    record = str(recorded(directory))
    arguments = ("what-if", record, "--policies", "exclusive-fcfs", "--json")
    plain, again = penstock(*arguments).json, penstock(*arguments).json
    bounded = penstock(*arguments, "--as-live", "--set", "live.max-wait=0.05").json
    assert plain == again
    assert plain != bounded
