"""What `status`, `top` and `explain` show is what happened: real deployments, ordinary commands."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from limits import HANG
from live.controller.turn_deployment import Deployed, deployed

MIB = 1 << 20


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Deployed]:
    with deployed(tmp_path) as site:
        yield site


def up(site: Deployed, *options: str) -> None:
    site.penstock("up", "--root", str(site.root), *options)


def finish(site: Deployed, name: str, *command: str) -> None:
    """Run a command as a job to its end, and take its exit status of 0."""
    run = site.run(name, *command)
    assert run.communicate(timeout=HANG) is not None
    assert run.returncode == 0


def writes(path: object, mebibytes: int) -> tuple[str, ...]:
    return ("dd", "if=/dev/zero", f"of={path}", "bs=1M", f"count={mebibytes}")


def test_jobs_of_one_process_spread_over_the_io_nodes(site: Deployed) -> None:
    """Every one of them went to I/O node 0, whatever the number of I/O nodes."""
    up(site, "--io-nodes", "4")
    for k in range(4):
        finish(site, f"w{k}", *writes(site.root / f"w{k}", 8))
    status = site.status()
    assert [node.write_bytes for node in status.io_nodes] == [8 * MIB] * 4
    assert [job.io_nodes for job in status.jobs] == [[0, 1, 2, 3]] * 4
    assert sorted(job.io_nodes_used for job in status.jobs) == [[0], [1], [2], [3]]


def test_explain_says_which_bytes_went_through_which_io_node(site: Deployed) -> None:
    """After a remap all bytes were said to have gone to the new I/O nodes."""
    up(site, "--io-nodes", "3")
    job = site.obedient("mover", "--io-nodes", "1")
    job.do("write 4")
    (first,) = site.job("mover").io_nodes
    site.penstock("remap", "mover", "--io-nodes", "2")
    job.do("write 3")
    job.finish()
    entry = site.job("mover")
    assert entry.bytes_by_io_node == {str(first): 4 * MIB, "2": 3 * MIB}
    explained = site.penstock("explain", "mover")
    assert f"It moved 4 MiB through I/O node {first}, 3 MiB through I/O node 2." in explained
    assert "It was allowed I/O node 2." in explained


def test_a_wait_that_was_enforced_is_not_said_to_be_hypothetical(site: Deployed) -> None:
    site.up()
    holder, waiter = site.obedient("holder"), site.obedient("waiter")
    site.held(holder, waiter)
    holder.do("end")
    assert waiter.answer() == "write"
    site.until("waiter", lambda job: job.phases == 1)
    site.penstock("mode", "observe")
    explained = site.penstock("explain", "waiter")
    assert "would have waited" not in explained
    assert "It waited for turns for" in explained
    waiter.finish()
    assert "would have waited" not in site.penstock("explain", "waiter")


def test_what_was_only_observed_stays_so_once_turns_are_enforced(site: Deployed) -> None:
    site.up(mode="observe")
    holder, waiter = site.obedient("holder"), site.obedient("waiter")
    holder.do("begin")
    waiter.do("write 4")
    site.until("waiter", lambda job: job.doing == "waiting")
    holder.do("end")
    site.until("waiter", lambda job: job.phases == 1)
    site.penstock("mode", "enforce")
    explained = site.penstock("explain", "waiter")
    assert "It waited for turns" not in explained
    assert "Enforced, it would have waited for turns for" in explained


@pytest.fixture
def static_writer(compiled: Callable[..., str]) -> str:
    return compiled("static.c", "-static")


def test_a_job_that_wrote_elsewhere_says_where(site: Deployed, tmp_path: Path) -> None:
    up(site, "--io-nodes", "1")
    (tmp_path / "elsewhere").mkdir()
    finish(site, "lost", *writes(tmp_path / "elsewhere" / "file", 1))
    entry = site.job("lost")
    assert (entry.moved_bytes, entry.zero_bytes_reason) == (0, "wrote elsewhere")
    explained = site.penstock("explain", "lost")
    assert (
        f"It opened 1 file for writing outside {site.root}, in {tmp_path}/elsewhere." in explained
    )
    assert "wrote elsewhere" in site.penstock("status")


def test_a_static_program_is_said_not_to_be_seen(site: Deployed, static_writer: str) -> None:
    up(site, "--io-nodes", "1")
    finish(site, "static", static_writer)
    assert site.job("static").zero_bytes_reason == "not attached"
    assert "No process of it loaded the client library" in site.penstock("explain", "static")
    assert "not attached" in site.penstock("status")


def test_a_shell_that_runs_a_static_program_names_the_possible_causes(
    site: Deployed, static_writer: str
) -> None:
    up(site, "--io-nodes", "1")
    finish(site, "shell", "sh", "-c", f"{static_writer}; true")
    assert site.job("shell").zero_bytes_reason == "no file opened"
    assert "statically linked" in site.penstock("explain", "shell")


def test_a_job_that_moved_data_needs_no_reason(site: Deployed, tmp_path: Path) -> None:
    up(site, "--io-nodes", "1")
    finish(site, "both", "sh", "-c", f"echo 1 > {tmp_path}/other; echo 1 > {site.root}/here")
    assert site.job("both").zero_bytes_reason is None
    assert "outside" not in site.penstock("explain", "both")


def test_a_job_alone_receives_everything_and_each_verb_shows_it(site: Deployed) -> None:
    site.up("--set", "site.bandwidth=40MiB/s")
    run = site.run("alone", *writes(site.root / "alone", 4000))
    entry = site.until("alone", lambda job: job.received is not None)
    assert (entry.share, entry.received) == (1.0, 1.0)
    assert "100% granted, 100% received" in site.penstock("explain", "alone")
    for table in (site.penstock("status"), site.penstock("top", "--once", "--interval", "1 s")):
        assert all(head in table for head in ("user", "granted", "received"))
    assert "of 40 MiB/s" in table
    run.terminate()  # its command, too
    run.wait(HANG)


def test_paths_outside_the_roots_are_for_the_deployments_user_and_not_in_the_api(
    site: Deployed, tmp_path: Path
) -> None:
    site.up("--http", "0")
    finish(site, "lost", "sh", "-c", f"echo 1 > {tmp_path}/other")
    status = site.status()
    assert status.directories == {status.jobs[0].id: [str(tmp_path)]}
    answer = httpx.get(f"{site.state.http.read_text().strip()}/v1/status", timeout=HANG)
    # Where a program wrote is as private as the counters that it is known from.
    assert "zero_bytes_reason" not in answer.json()["jobs"][0]
    assert "elsewhere" not in answer.text
    assert answer.json()["jobs"][0]["io_nodes_used"] == []
    assert str(tmp_path) not in answer.text


def test_why_a_job_moved_nothing_is_shown_with_a_token(site: Deployed, tmp_path: Path) -> None:
    token = "0123456789abcdef-reader"
    (tmp_path / "tokens").write_text(f"ops read {token}\n")
    (tmp_path / "tokens").chmod(0o600)
    site.up("--http", "0", "--token-file", str(tmp_path / "tokens"))
    finish(site, "lost", "sh", "-c", f"echo 1 > {tmp_path}/other")
    address, headers = site.state.http.read_text().strip(), {"Authorization": f"Bearer {token}"}
    for path in ("/v1/status", "/v1/timeline"):
        answer = httpx.get(f"{address}{path}", headers=headers, timeout=HANG)
        assert answer.json()["jobs"][0]["zero_bytes_reason"] == "wrote elsewhere", path
