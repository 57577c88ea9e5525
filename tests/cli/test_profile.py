"""penstock profile: one log, several, a folder with damaged ones, curves, and what it writes."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from penstock.learn.profiles import Profile
from penstock.sim.formats.darshan import Reader

darshan = pytest.importorskip("darshan", reason="PyDarshan is not installed")
EXAMPLES = Path(darshan.__path__[0]) / "examples" / "example_logs"
DXT, VPIC = str(EXAMPLES / "dxt.darshan"), str(EXAMPLES / "example.darshan")


def test_one_log_in_detail(penstock: Any) -> None:
    result = penstock("profile", VPIC, "--cores", "32")
    assert result.status == 0, result.err
    assert "2,048 processes" in result.out
    assert "wrote 2 TiB" in result.out
    assert "write    shared            strided" in result.out
    assert "as a write: 64 nodes x 32 processes x 1 GiB to one file" in result.out
    assert "1920-2047 |" in result.out


def test_nodes_that_are_not_told_are_not_made_up(penstock: Any) -> None:
    assert "give the processes of a node with --cores" in penstock("profile", VPIC).out
    (matches,) = penstock("profile", VPIC, "--json").json["profiles"]
    assert matches["nodes"] is None
    assert matches["write"] is None


def test_json_and_out_are_the_same(penstock: Any, directory: Path) -> None:
    result = penstock("profile", DXT, VPIC, "--json", "--out", "found.json")
    assert [one["name"] for one in result.json["profiles"]] == ["dxt", "example"]
    assert result.json["failed"] == []
    assert (directory / "found.json").read_text() == result.out


def test_a_folder_becomes_a_workload_that_can_be_simulated(penstock: Any, directory: Path) -> None:
    shutil.copytree(EXAMPLES, directory / "logs")
    shutil.copytree(EXAMPLES, directory / "logs" / "again")
    result = penstock("profile", "logs", "--workload", "jobs.json", "--cores", "32")
    assert result.status == 0, result.err
    jobs = json.loads((directory / "jobs.json").read_text())["jobs"]
    assert len(jobs) == 12
    assert len({job["id"] for job in jobs}) == 12
    releases = [job["release"] for job in jobs]
    assert releases == sorted(releases)
    assert releases[0] == 0
    vpic = next(job for job in jobs if job["id"] == "example")
    assert vpic["nodes"] == 64
    assert sum(map(sum, vpic["phases"])) == pytest.approx(117.0)
    assert penstock("simulate", "jobs.json", "--policy", "set-10", "--json").json["jobs"] == 12


def test_damaged_logs_are_told_and_the_others_profiled(penstock: Any, directory: Path) -> None:
    shutil.copytree(EXAMPLES, directory / "logs")
    whole = Path(DXT).read_bytes()
    (directory / "logs" / "cut.darshan").write_bytes(whole[: len(whole) // 2])
    (directory / "logs" / "empty.darshan").touch()
    result = penstock("profile", "logs", "--out", "found.json")
    assert result.status == 1
    assert "logs/cut.darshan: it is damaged" in result.err
    assert "logs/empty.darshan has 0 bytes" in result.err
    assert "2 of 8 logs could not be read" in result.err
    assert "Traceback" not in result.err
    matches = json.loads((directory / "found.json").read_text())
    assert len(matches["profiles"]) == 6
    assert [Path(one["log"]).name for one in matches["failed"]] == ["cut.darshan", "empty.darshan"]


def test_one_bad_log_is_wrong_input(penstock: Any, directory: Path) -> None:
    (directory / "bad.darshan").write_bytes(os.urandom(4096))
    result = penstock("profile", "bad.darshan", "--json")
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("penstock: error: bad.darshan: it is not a Darshan log")
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "no logs; give LOG.darshan"),
        (("--curves", "mn4"), "no logs; give LOG.darshan"),
        (("nowhere.darshan",), "no such file"),
        (("empty",), "contains no *.darshan"),
        ((VPIC, "--curves", "nowhere.json"), "nowhere.json: no such file"),
        ((VPIC, "--curves", "old.json"), "measure again, or give mn4"),
        ((VPIC, "--workload", "nowhere/jobs.json"), "there is no directory"),
    ],
)
def test_wrong_input(penstock: Any, directory: Path, args: tuple[str, ...], message: str) -> None:
    (directory / "empty").mkdir()
    (directory / "old.json").write_text('{"jobs": [{"id": "a", "processes": 4, "curve": {}}]}')
    result = penstock("profile", *args)
    assert result.status == 2
    assert message in result.err


def test_no_log_is_written_over(penstock: Any, directory: Path) -> None:
    shutil.copytree(EXAMPLES, directory / "logs")
    shutil.copy(DXT, directory / "mine.darshan")
    for args in (
        ("mine.darshan", "--out", "mine.darshan"),
        ("logs", "--workload", "logs/dxt.darshan"),
        (DXT, "--curves", "curves.json", "--html", "curves.json"),
    ):
        (directory / "curves.json").write_text(curves(large=1.0))
        result = penstock("profile", *args)
        assert result.status == 2
        assert "is read by this command" in result.err
    assert (directory / "mine.darshan").read_bytes() == Path(DXT).read_bytes()


def test_what_is_no_file_is_said_once(penstock: Any, directory: Path) -> None:
    os.mkfifo(directory / "mix")
    result = penstock("profile", "mix")
    assert result.err == "penstock: error: mix is not a regular file; give a Darshan log\n"


def interrupting(monkeypatch: pytest.MonkeyPatch, after: int) -> list[Path]:
    """Interrupt the reader after this number of logs; return the paths given to it."""
    arguments: list[Path] = []
    read = Reader.read

    def some(self: Reader, path: Path) -> Profile:
        if len(arguments) == after:
            raise KeyboardInterrupt
        arguments.append(path)
        return read(self, path)

    monkeypatch.setattr(Reader, "read", some)
    return arguments


def test_an_interrupted_command_goes_on(
    penstock: Any, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads no log twice, writes what an undisturbed one writes, and leaves nothing else."""
    shutil.copytree(EXAMPLES, directory / "logs")
    command = ("profile", "logs", "--out", "found.json", "--workload", "jobs.json")
    with monkeypatch.context() as patched:
        arguments = interrupting(patched, after=4)
        result = penstock(*command)
    assert result.status == 130
    assert "profiles of 4 logs are kept in found.json.jsonl; the same" in result.err
    assert not (directory / "found.json").exists()
    kept = (directory / "found.json.jsonl").read_bytes()
    (directory / "found.json.jsonl").write_bytes(kept[:-100])  # as a crash leaves it
    arguments[0].touch()  # another log by that name
    with monkeypatch.context() as patched:
        again = interrupting(patched, after=99)
        assert penstock(*command).status == 0
    assert again == [arguments[0], arguments[3], *sorted(set(again[2:]))]
    assert len(again) == 6 - 2
    resumed = [(directory / name).read_text() for name in ("found.json", "jobs.json")]
    assert not (directory / "found.json.jsonl").exists()
    assert penstock(*command).status == 0
    assert resumed == [(directory / name).read_text() for name in ("found.json", "jobs.json")]


def test_an_interrupted_command_without_a_file_shows_what_it_has(
    penstock: Any, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(EXAMPLES, directory / "logs")
    interrupting(monkeypatch, after=3)
    result = penstock("profile", "logs")
    assert result.status == 130
    assert "dxt" in result.out
    assert "3 logs were read; with --out FILE.json" in result.err


@pytest.mark.parametrize("content", ["my notes", "my notes\n", '{"key": 1}\n'])
def test_a_file_of_others_is_not_taken_for_kept_profiles(
    penstock: Any, directory: Path, content: str
) -> None:
    (directory / "found.json.jsonl").write_text(content)
    result = penstock("profile", DXT, "--out", "found.json")
    assert result.status == 2
    assert "is not a file of profiles of an interrupted run" in result.err
    assert (directory / "found.json.jsonl").read_text() == content


def curves(**bandwidths: float) -> str:
    def part(operation: str, size: int, volume: float) -> dict[str, object]:
        return {
            "operation": operation,
            "layout": "shared",
            "spatiality": "strided",
            "request_size": size,
            "volume": volume,
        }

    jobs = [
        {"id": name, "processes": 2048, "curve": {"1": value}} for name, value in bandwidths.items()
    ]
    parts = {
        "large": [part("write", 128 << 20, 1e9)],
        "small": [part("write", 256, 1e9)],
        "mixed": [part("write", 128 << 20, 3e9), part("write", 256, 1e9)],
    }
    return json.dumps({"jobs": jobs, "patterns": parts})


def test_a_curve_is_told_from_base_patterns(penstock: Any, directory: Path) -> None:
    (directory / "curves.json").write_text(curves(large=100.0, small=1.0, mixed=2.0))
    answer = ("profile", VPIC, "--curves", "curves.json", "--workload", "jobs.json")
    (matches,) = penstock(*answer, "--json").json["profiles"]
    assert matches["curve"]["1"] == pytest.approx(100.0, rel=1e-3)
    assert matches["matches"][0]["base"] == "large"
    assert not matches["guess"]
    (job,) = json.loads((directory / "jobs.json").read_text())["jobs"]
    assert job["curve"] == matches["curve"]
    out = penstock(*answer).out
    assert "estimated from base patterns that were measured in curves.json, not in this log" in out
    assert "estimated MB/s" in out


def test_what_the_run_reached_itself_stands_beside_the_estimate(penstock: Any) -> None:
    """A new user took the estimate of another machine for the bandwidth of the log."""
    (profile,) = penstock("profile", DXT, "--curves", "mn4", "--json").json["profiles"]
    moved = sum(phase["read"] + phase["written"] for phase in profile["phases"])
    seconds = sum(phase["ended"] - phase["began"] for phase in profile["phases"])
    out = penstock("profile", DXT, "--curves", "mn4").out
    assert "measured on MareNostrum 4 (mn4), not in this log" in out
    assert f"measured in this log: {moved / seconds / 1e6:,.1f} MB/s over its phases" in out
    assert "measured in this log" not in penstock("profile", DXT).out


def test_a_guess_is_called_one_and_not_given_to_allocators(penstock: Any, directory: Path) -> None:
    answer = ("profile", DXT, "--curves", "mn4", "--workload", "jobs.json")
    assert "a guess" in penstock(*answer).out
    (job,) = json.loads((directory / "jobs.json").read_text())["jobs"]
    assert "curve" not in job


def test_mixtures_that_were_measured_show_the_error(penstock: Any, directory: Path) -> None:
    """4 GB in 3 / 100 + 1 / 1 seconds a GB: 3.88 MB/s are told where 2 were measured."""
    (directory / "curves.json").write_text(curves(large=100.0, small=1.0, mixed=2.0))
    (one,) = penstock("profile", "--curves", "curves.json", "--json").json["mixtures"]
    assert one["told"] == pytest.approx(4 / (3 / 100 + 1))
    assert one["error"] == pytest.approx(one["told"] / 2 - 1)
    assert "+94.2%" in penstock("profile", "--curves", "curves.json").out


def test_a_page_holds_its_pictures(penstock: Any, directory: Path) -> None:
    result = penstock("profile", DXT, VPIC, "--html", "page.html")
    assert result.status == 0, result.err
    page = (directory / "page.html").read_text()
    assert page.count("<img") == 2
    assert "data:image/svg+xml" in page
    assert 'src="http' not in page


WORKLOAD = {
    "jobs": [
        {"id": "a", "phases": [[8, 2], [8, 2], [8, 2]]},
        {"id": "b", "phases": [[8, 2], [8, 2]]},
        {"id": "c", "phases": [[9, 91], [10, 90]]},
        {"id": "once", "phases": [[5, 5]]},
    ]
}


def test_the_sets_of_a_workload(penstock: Any, directory: Path) -> None:
    """Worked out by hand in tests/sim/evaluate/test_site_sets.py."""
    (directory / "jobs.json").write_text(json.dumps(WORKLOAD))
    result = penstock("profile", "jobs.json", "--sets", "--window", "50s")
    assert result.status == 0, result.err
    assert "3 jobs with at least 2 I/O phases" in result.out
    assert "left out: 1 with fewer phases, 0 below 100 MB/s" in result.out
    assert "the bandwidth of 3 jobs is not known" in result.out
    assert "S_1  3.16 s to 31.6 s       2  66.67%" in result.out
    assert "2 sets             1 (25.00%)          1 (25.00%)" in result.out
    assert "another job was in I/O for 7.9% of it" in result.out
    assert "Cannot be said of 3 jobs in 4 windows" in result.out
    answer = penstock("profile", "jobs.json", "--sets", "--window", "50s", "--json").json
    assert answer["limits"] == {"bandwidth": 1e8, "phases": 2, "window": 50.0}
    assert answer["jobs_by_set"] == {"1": 2, "2": 1}
    assert answer["windows_by_sets"] == {"1": 3, "2": 1}
    assert answer["shared"] == pytest.approx(15 / 191)
    assert answer["answer"]["gain_possible"] is None


def test_the_sets_of_a_folder_of_logs(penstock: Any, directory: Path) -> None:
    """Of PyDarshan's examples one run has two phases and reaches 100 MB/s."""
    shutil.copytree(EXAMPLES, directory / "logs")
    plain = penstock("profile", "logs", "--json").json["profiles"]
    two = [one for one in plain if len(one["phases"]) > 1]
    fast = [
        one
        for one in two
        if (one["read"] + one["written"])
        >= 1e8 * sum(phase["ended"] - phase["began"] for phase in one["phases"])
    ]
    sets = penstock("profile", "logs", "--sets", "--json").json
    assert (sets["jobs"], sets["slow"]) == (len(fast), len(two) - len(fast))
    assert sets["few_phases"] == len(plain) - len(two)
    assert sum(sets["jobs_by_set"].values()) == len(fast) > 0
    out = penstock("profile", "logs", "--sets", "--workload", "jobs.json").out
    assert "Cannot be said" in out
    assert "only if logs has all of its jobs" in out
    assert "workload: jobs.json" in out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("jobs.json", "--sets", "--window", "0s"), "--window: a window has no length"),
        (("jobs.json", "--sets", "--least-bandwidth", "fast"), "--least-bandwidth: 'fast'"),
        (("jobs.json", "jobs.json", "--sets"), "one workload file"),
        (("jobs.json", "--sets", "--out", "o.json"), "are for logs"),
        (("nowhere.json", "--sets"), "nowhere.json"),
    ],
)
def test_wrong_input_of_sets(
    penstock: Any, directory: Path, args: tuple[str, ...], message: str
) -> None:
    (directory / "jobs.json").write_text(json.dumps(WORKLOAD))
    result = penstock("profile", *args)
    assert result.status == 2
    assert message in result.err
