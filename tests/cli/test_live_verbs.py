"""up, run, status, remap, down: wrong input is told in a line, and nothing is started."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from cli import standing_jobs

from penstock import cli
from penstock.live.deployment.launcher import LaunchError
from penstock.live.deployment.spec import Deployment
from penstock.live.ionode.process import IONode
from penstock.live.protocol import messages
from penstock.live.protocol.job_record import JobRecord

UP = ("up", "--io-nodes", "1")


@pytest.fixture(autouse=True)
def nothing_starts(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (directory / "data").mkdir()
    (directory / "file").touch()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(directory / "run"))
    monkeypatch.setattr("penstock.live.deployment.launcher.up", None)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (UP, "--root DIR"),
        ((*UP, "--root", "nowhere"), "no such directory"),
        ((*UP, "--root", "/"), "cannot be managed"),
        ((*UP, *9 * ("--root", "data")), "at most 8"),
        (("up", "--root", "data"), "--io-nodes"),
        (("up", "--root", "data", "--io-nodes", "1025"), "1025"),
        ((*UP, "--root", "data", "--stripe", "1 parsec"), "--stripe: '1 parsec' is not a volume"),
        ((*UP, "--root", "data", "--stripe", "1"), "--stripe 1: a stripe has at least 64 KiB"),
        ((*UP, "--root", "data", "--stripe", "100 KiB"), "is a multiple of 64 KiB"),
        (("remap", "job", "--io-nodes", "0,1", "--stripe", "4 KiB"), "at least 64 KiB"),
        ((*UP, "--root", "data", "--scheduler", "bad"), "io-node.scheduler is 'bad'; give the"),
        ((*UP, "--root", "data", "--set", "io-node.shares=xx"), ": bytes, concurrency"),
        ((*UP, "--root", "data", "--set", "io-node.quantun=1MiB"), "did you mean"),
        ((*UP, "--root", "data", "--set", "quantum=1MiB"), "did you mean 'io-node.quantum'"),
        ((*UP, "--root", "data", "--set", "io-node.depth"), "KEY=VALUE"),
        ((*UP, "--root", "data", "--set", "io-node.depth=many"), "io-node.depth is 'many'; give"),
        ((*UP, "--root", "data", "--set", "io-node.depth=0"), "depth"),
        ((*UP, "--root", "data", "--emulate", "rate=1"), None),
        ((*UP, "--root", "data", "--emulate", "rat=1"), "did you mean 'rate'"),
        ((*UP, "--root", "data", "--root", "run", "--emulate", "rate=1"), "no such directory"),
        (("run",), "COMMAND"),
        (("run", "--name", "a b", "--", "true"), "job name 'a b'"),
        (("run", "--name", "x" * 10_000, "--", "true"), "up to 40 letters"),
        (("run", "--name", "", "--", "true"), "job name ''"),
        (("run", "--application", "x" * 10_000, "--", "true"), "give up to 200 bytes"),
        (("run", "--application", "a\x1b[31m", "--", "true"), "that can be printed"),
        (("run", "--hint", "phases=inf", "--", "true"), "it is not from 1 to 1e+09"),
        (("run", "--hint", "io-nodes=1025", "--", "true"), "it is not from 0 to 1024"),
        (("run", "--require", "--", "true"), "no controller"),
        (("status",), "nothing is up"),
        (("remap", "job"), "--direct"),
        (("remap", "job", "--direct", "--io-nodes", "1"), "either"),
        (("remap", "job", "--direct"), "nothing is up"),
        (("statsu",), "did you mean 'status'"),
        (("jobs",), "did you mean 'status'"),
        ((*UP, "--root", "file"), "--root file is not a directory"),
        (("run", "--hint", "foo=1", "--", "true"), "unknown hint 'foo'; known: io-nodes, pattern"),
    ],
)
def test_wrong_input(penstock: Any, args: tuple[str, ...], message: str | None) -> None:
    if message is None:  # right, so that it comes as far as starting
        with pytest.raises(TypeError):
            cli.main(list(args))
        return
    result = penstock(*args)
    assert result.status == 2, result.err
    assert message in result.err
    assert (result.out, result.err.count("\n")) == ("", 1)


def test_the_section_of_io_nodes_reaches_up_and_ionode(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file's settings, then --set, then flags; an I/O node that `up` starts leaves them to it."""
    (directory / "penstock.toml").write_text(
        '[io-node]\nscheduler = "twins"\nwindow = "2 ms"\ndepth = 4\n'
    )
    started: list[Deployment] = []
    served: list[messages.Settings] = []
    monkeypatch.setattr("penstock.live.deployment.launcher.up", started.append)
    monkeypatch.setattr(IONode, "serve", lambda node, _: served.append(node.settings))
    assert cli.main([*UP, "--root", "data", "--set", "io-node.quantum=1MiB", "--depth", "8"]) != 0
    node = ("ionode", "--socket", "a", "--control", "b", "--quantum", "1 MiB")
    cli.main([*node, "--set", "io-node.depth=8"])
    expected = messages.Settings(scheduler="twins", window=2e-3, depth=8, quantum=1 << 20)
    assert [deployment.settings for deployment in started] == [expected]
    assert served == [expected]
    assert "--no-config" in started[0].io_node
    cli.main(["ionode", "--socket", "a", "--control", "b", "--no-config"])
    assert served[1] == messages.Settings()


def test_hints_are_listed_once(penstock: Any) -> None:
    assert "give any of" not in penstock("run", "--hint", "foo=1", "--", "true").err
    assert "give any of" in penstock("run", "--hint", "phases=x", "--", "true").err


def test_a_command_that_does_not_exist_is_told_in_json(penstock: Any) -> None:
    result = penstock("run", "--json", "--", "/nonexist")
    assert result.status == 127
    summary = json.loads(result.err.splitlines()[-1])
    assert (summary["status"], summary["error"]) == (127, "/nonexist: No such file or directory")


def test_a_key_of_nobody_is_warned_of(penstock: Any) -> None:
    assert penstock("key", "site.key").status == 0
    known = penstock("key", "root.key", "--of-user", "root", "--key-file", "site.key")
    assert (known.status, known.err) == (0, "")
    unknown = penstock("key", "x.key", "--of-user", "nosuchuser", "--key-file", "site.key")
    assert (unknown.status, "this host has no user 'nosuchuser'" in unknown.err) == (0, True)


@pytest.mark.parametrize(("mode", "warned"), [(0o700, True), (0o711, False)])
def test_a_state_that_others_cannot_enter_is_warned_of(
    penstock: Any, monkeypatch: pytest.MonkeyPatch, mode: int, warned: bool
) -> None:
    def refuse(_: Deployment) -> None:
        raise LaunchError("not started")

    monkeypatch.setattr("penstock.live.deployment.launcher.up", refuse)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as path:
        Path(path).chmod(mode)
        state = ("--state", f"{path}/state")
        result = penstock(*UP, "--root", "data", "--all-users", *state)
        assert (f"{path} cannot be entered by other users" in result.err) == warned
        assert "entered" not in penstock(*UP, "--root", "data", *state).err


def test_the_present_wait_of_a_job_is_shown(penstock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are counted when they stop waiting: a job that waited for the first time had none."""
    waits = standing_jobs.job("x.9", doing="waiting", since_seconds=2.7)
    there = standing_jobs.status(waits)
    monkeypatch.setattr("penstock.live.deployment.launcher.ask", lambda *_: there)
    monkeypatch.setenv("COLUMNS", "200")
    assert "0 (0 s), now 2.7 s" in penstock("status").out


def test_down_where_nothing_is_up_is_no_error(penstock: Any) -> None:
    assert penstock("down").out.startswith("nothing is up in")
    assert penstock("down", "--json").json["ended"] is False


@pytest.mark.parametrize(
    "verb",
    [
        *("up", "run", "status", "top", "explain", "mode", "remap", "down", "explore"),
        *("standby", "tuner"),
    ],
)
def test_help_teaches_with_examples(penstock: Any, verb: str) -> None:
    out = penstock(verb, "--help").out
    assert "Examples:" in out
    assert f"penstock {verb}" in out


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        (("--set", "site.bandwidth=100"), "site.bandwidth 100 has no unit and means 100 B/s"),
        (("--emulate", "rate=100"), "emulated rate 100 has no unit and means 100 B/s"),
        (("--set", "site.bandwidth=10kB/s"), "site.bandwidth 10kB/s is below 1 MB/s"),
        (("--emulate", "rate=100MB/s,io-node-link=7"), "emulated io-node-link 7 has no unit"),
        (("--set", "site.bandwidth=100MB/s", "--emulate", "rate=100MB/s"), None),
    ],
)
def test_a_bandwidth_that_is_probably_a_mistake_is_warned_of(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], warning: str | None
) -> None:
    """100 was taken as 100 B/s without a word, and jobs seemed to hang."""
    with pytest.raises(TypeError):  # it comes as far as starting
        cli.main([*UP, "--root", "data", *options])
    err = capsys.readouterr().err
    assert err == "" if warning is None else f"penstock: warning: {warning}" in err


def job(**changes: Any) -> JobRecord:
    fields: dict[str, Any] = {"seconds": 4.0, "io_nodes": [0], "command": ["job"], "doing": None}
    return standing_jobs.job("job.1", **fields | changes)


@pytest.mark.parametrize(
    ("jobs", "there", "not_there"),
    [
        (
            [job(io_nodes=[0, 1, 2, 5])],
            ["none (may use 0-2 5)"],
            ["waits", "fail-opens  ", "received"],
        ),
        ([job(io_nodes=[0, 1, 2, 3], io_nodes_used=[1])], ["1 (may use 0-3)"], []),
        ([job(io_nodes=[2], io_nodes_used=[0, 2])], ["0 2 (may use 2)"], []),
        ([job(io_nodes=[], io_nodes_used=[0])], ["0 (may use direct)"], []),
        ([job(io_nodes=[2, 1], io_nodes_used=[1, 2])], ["1-2 (may use 2 1)"], []),
        ([job(zero_bytes_reason="wrote elsewhere")], ["0 bytes because", "wrote elsewhere"], []),
        (
            [job(doing="transferring", share=0.25, received=0.5)],
            ["granted  received", "25%       50%"],
            ["0 bytes because"],
        ),
        (  # too early to tell what it receives
            [job(doing="transferring", share=0.25, received=None)],
            ["granted  received", "25%         -"],
            [],
        ),
        ([job(doing="waiting", mode="observe", received=0.5)], ["received", "50%"], []),
        ([job()], ["in total, as jobs last reported"], []),
        ([job(state="ended", status=0)], ["in total\n"], ["last reported"]),
        ([job(io_nodes=[])], ["direct"], []),
        ([job(forwarded_bytes=2**20, direct_bytes=2**20)], ["0.5"], []),
        ([job(state="ended", status=3)], ["exit status 3"], []),
        ([job(state="ended", status=0, doing="ended")], ["exit status 0"], []),
        ([job(doing="waiting", mode="enforce")], ["waiting"], ["running"]),
        ([job(doing="waiting", mode="observe")], ["transferring"], ["waiting"]),
        ([job(user="you")], ["user", "you"], []),
        ([job(waits=2, waited_seconds=1.5)], ["waits", "2 (1.5 s)"], []),
        ([job(fail_opens=7)], ["fail-opens  ", " 7 "], []),
        ([job(command=["a\nb", "c" * 300])], ["a b ccc", "..."], ["c" * 60]),
    ],
)
def test_status_says_what_differs_and_fits(
    penstock: Any,
    monkeypatch: pytest.MonkeyPatch,
    jobs: list[JobRecord],
    there: list[str],
    not_there: list[str],
) -> None:
    """Columns that would be empty for all jobs are left out; commands never fold a table."""
    matches = messages.Status(
        site="here",
        roots=["/data"],
        emulated="laptop",
        jobs=jobs,
        io_nodes=[],
        forwarded_bytes=0,
        direct_bytes=0,
        fail_open_total=0,
    )
    monkeypatch.setattr("penstock.live.deployment.launcher.ask", lambda *_: matches)
    out = penstock("status").out
    assert "/data, on an emulated file system (laptop)" in out
    assert [text for text in there if text not in out] == []
    assert [text for text in not_there if text in out] == []
    assert len(out.splitlines()) == 2 + 1 + len(jobs) + 2
