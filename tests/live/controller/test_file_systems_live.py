"""Real jobs on the file systems of a site: they wait for each other on the same one alone."""

from pathlib import Path

import pytest
from live.controller.turn_deployment import MAX_WAIT, Deployed, ScriptedJob

from penstock.model import PhaseBegan
from penstock.records import Record, replay

MIB = 1 << 20


@pytest.fixture
def roots(site: Deployed, tmp_path: Path) -> tuple[Path, Path]:
    """A site with two file systems."""
    home, scratch = tmp_path / "home", tmp_path / "scratch"
    for root in (home, scratch):
        root.mkdir()
    site.penstock(
        *("up", "--root", f"home={home}", "--root", f"scratch={scratch}", "--io-nodes", "1"),
        *("--mode", "enforce", "--policy", "exclusive-fcfs"),
        *("--set", f"live.max-wait={MAX_WAIT} s"),
    )
    return home, scratch


def on(site: Deployed, name: str, root: Path) -> ScriptedJob:
    """Return a job with a file on a file system."""
    job = site.obedient(name)
    job.do(f"to {root / name}")
    return job


def used(site: Deployed) -> dict[str, list[tuple[int, ...]]]:
    """Return what the phases of each job were on, by the record; replay it."""
    site.penstock("down")
    record = Record(*sorted(site.state.records.iterdir()))
    assert replay(record).first_difference is None
    resources: dict[str, list[tuple[int, ...]]] = {}
    for entry in record:
        if isinstance(entry.event, PhaseBegan):
            name = entry.event.job.rpartition(".")[0]
            resources.setdefault(name, []).append(entry.event.resources)
    return resources


def test_jobs_on_two_file_systems_do_not_wait_for_each_other(
    site: Deployed, roots: tuple[Path, Path]
) -> None:
    home, scratch = roots
    first, second = on(site, "first", home), on(site, "second", scratch)
    first.do("begin")
    first.do("write 4")
    second.do("write 4")  # while the first one has its turn
    assert site.job("first").doing == "transferring"
    assert site.job("second").behind == []
    first.do("end")
    for job in (first, second):
        assert job.finish()["fail_opens"] == 0
    assert used(site) == {"first": [(0,)], "second": [(1,)]}


def test_jobs_on_one_file_system_take_turns(site: Deployed, roots: tuple[Path, Path]) -> None:
    _, scratch = roots
    first, second = on(site, "first", scratch), on(site, "second", scratch)
    first.do("begin")
    first.do("write 4")
    second.tell("write 4")
    assert site.until("second", lambda job: job.doing == "waiting").behind == [site.job("first").id]
    assert second.is_silent()
    first.do("end")
    assert second.answer() == "write"
    for job in (first, second):
        assert job.finish()["fail_opens"] == 0
    assert used(site) == {"first": [(1,)], "second": [(1,)]}


def test_a_job_waits_only_on_the_file_system_that_another_one_uses(
    site: Deployed, roots: tuple[Path, Path], tmp_path: Path
) -> None:
    home, scratch = roots
    first, both = on(site, "first", scratch), on(site, "both", home)
    first.do("begin")
    first.do("write 4")
    both.do("begin")
    both.do("write 4")  # at home, where nobody is
    both.do(f"to {scratch / 'both'}")
    both.tell("write 4")
    entry = site.until("both", lambda job: job.waits_on == ["scratch"])
    assert (entry.doing, entry.behind) == ("transferring", [site.job("first").id])
    assert entry.file_systems == ["home", "scratch"]
    assert both.is_silent()
    explained = site.penstock("explain", "both")
    assert f"On scratch it waits for its turn, for {site.job('first').id}" in explained
    top = site.penstock("top", "--once", "--interval", "0.1 s")
    assert "exclusive-fcfs per file system, enforce" in top
    assert f"on scratch: for {site.job('first').id}" in " ".join(top.split())
    table = site.penstock("status")
    assert [line.split()[0] for line in table.splitlines() if str(tmp_path) in line][1:] == [
        "home",
        "scratch",
    ]
    first.do("end")
    assert both.answer() == "write"
    both.do("end")
    entry = site.until("both", lambda job: job.bytes_by_file_system.get("scratch") == 4 * MIB)
    assert entry.bytes_by_file_system == {"home": 4 * MIB, "scratch": 4 * MIB}
    site.until("first", lambda job: job.bytes_by_file_system == {"scratch": 4 * MIB})
    assert [(each.name, each.bytes) for each in site.status().file_systems] == [
        ("home", 4 * MIB),
        ("scratch", 8 * MIB),
    ]
    for job in (first, both):
        assert job.finish()["fail_opens"] == 0
    assert used(site) == {"first": [(1,)], "both": [(0,), (0, 1)]}
