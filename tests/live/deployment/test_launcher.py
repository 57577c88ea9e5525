"""A deployment comes up, runs jobs with their exit status, survives deaths, and goes down."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from limits import HANG
from live.other_users import AS_ROOT, NOBODY

from penstock.errors import InputError
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.state_directory import (
    StateDirectory,
    end_holders,
    lock_holder,
    wait_for_exit,
)

PENSTOCK = (sys.executable, "-m", "penstock.cli")
WAIT = HANG
Up = Callable[..., StateDirectory]


@pytest.fixture
def up(root: Path, tmp_path: Path) -> Iterator[Up]:
    """Bring a deployment up; whatever is left of it is ended."""
    state = StateDirectory(tmp_path / "state")

    def up(**changes: Any) -> StateDirectory:
        arguments: dict[str, Any] = {"io_nodes": 2, "roots": [str(root)]}
        launcher.up(Deployment(state=str(state.folder), **(arguments | changes)))
        return state

    yield up
    launcher.down(state)


@pytest.fixture
def state(up: Up) -> StateDirectory:
    return up()


def penstock(*args: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [*PENSTOCK, *map(str, args)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, **options
    )


def status(state: StateDirectory) -> Any:
    result = penstock("status", "--state", state.folder, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def begin(state: StateDirectory, **options: Any) -> tuple[ControlConnection, messages.JobAccepted]:
    """Be a job that is nothing but its connection."""
    controller = ControlConnection(state.controller)
    message = messages.BeginJob(
        name="test", pid=os.getpid(), command=["test"], user="me", **options
    )
    return controller, controller.ask(message, messages.JobAccepted)


def map_of(controller: ControlConnection) -> dict[int, int]:
    mapped = controller.receive(messages.NodeMap, WAIT)
    return {node.number: node.id for node in mapped.nodes}


def test_status_has_the_names_that_scripts_rely_on(state: StateDirectory) -> None:
    site_status = status(state)
    names = {"jobs", "io_nodes", "forwarded_bytes", "direct_bytes", "fail_open_total"}
    assert names <= set(site_status)
    assert [node["number"] for node in site_status["io_nodes"]] == [0, 1]
    assert all(node["alive"] and node["state"] == "serving" for node in site_status["io_nodes"])
    assert all(Path(f"/proc/{node['pid']}").exists() for node in site_status["io_nodes"])
    assert (state.folder.stat().st_mode & 0o777, state.controller.stat().st_mode & 0o777) == (
        0o700,
        0o600,
    )


@pytest.mark.parametrize(("does", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)])
def test_the_exit_status_is_the_commands(state: StateDirectory, does: str, code: int) -> None:
    assert penstock("run", "--state", state.folder, "--", "sh", "-c", does).returncode == code
    (job,) = status(state)["jobs"]
    assert (job["id"], job["state"], job["status"]) == ("sh.1", "ended", code)


def test_a_command_that_is_not_there_ends_as_in_a_shell(state: StateDirectory) -> None:
    result = penstock("run", "--state", state.folder, "--", "no-such-command")
    assert result.returncode == 127
    assert result.stderr.count("\n") == 1
    assert status(state)["jobs"][0]["status"] == 127


def test_a_jobs_bytes_are_counted_and_stay_in_the_totals(state: StateDirectory, root: Path) -> None:
    write = ("dd", "if=/dev/zero", f"of={root}/f", "bs=64k", "count=16", "status=none")
    run = ("run", "--state", state.folder, "--name", "writer", "--io-nodes", "0", "--")
    assert penstock(*run, *write).returncode == 0
    site_status = status(state)
    assert (site_status["forwarded_bytes"], site_status["direct_bytes"]) == (0, 1 << 20)
    assert site_status["jobs"][0]["name"] == "writer"
    assert site_status["jobs"][0]["counters"]["write_bytes"] == 1 << 20


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_go_to_the_command(state: StateDirectory, number: signal.Signals) -> None:
    program = (
        "import signal, sys\n"
        f"signal.pthread_sigmask(signal.SIG_BLOCK, [{int(number)}])\n"
        "print('ready', flush=True)\n"
        f"sys.exit(42 if signal.sigwait([{int(number)}]) else 1)\n"
    )
    command = [*PENSTOCK, "run", "--state", str(state.folder), "--", sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "ready\n"
        job.send_signal(number)
        assert job.wait(WAIT) == 42


def test_the_terminals_interrupt_is_not_forwarded(state: StateDirectory) -> None:
    """The kernel sends it to the whole foreground group; forwarded as well, it would come twice.

    A command in a group of its own gets what is forwarded, and nothing else.
    """
    program = (
        "import os, signal\n"
        "os.setpgrp()\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
        "print('ready', flush=True)\n"
        "print('got', signal.sigtimedwait([signal.SIGINT], 1.0), flush=True)\n"
    )
    terminal, end_of_job = os.openpty()
    on_terminal = (
        "import fcntl, os, sys, termios\n"
        "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])\n"
    )
    run = [*PENSTOCK[1:], "run", "--state", str(state.folder), "--", sys.executable, "-c", program]
    with subprocess.Popen(
        [sys.executable, "-c", on_terminal, *run],
        stdin=end_of_job,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "ready\n"
        os.write(terminal, b"\x03")
        assert job.stdout.readline() == "got None\n"
        assert job.wait(WAIT) == 0
    os.close(terminal)
    os.close(end_of_job)


def test_signals_that_python_ignores_kill_as_ever(state: StateDirectory) -> None:
    """SIGPIPE ends `yes`; were it ignored, as Python leaves it, it would complain instead."""
    shell = f"{' '.join(PENSTOCK)} run --state {state.folder} -- yes | head -1"
    result = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {shell}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.stdout, result.stderr, result.returncode) == ("y\n", "", 128 + signal.SIGPIPE)


def test_without_a_controller_the_command_runs_plainly(tmp_path: Path) -> None:
    run = ("run", "--state", tmp_path / "none")
    result = penstock(*run, "--", "sh", "-c", "echo done; exit 3")
    assert (result.stdout, result.returncode) == ("done\n", 3)
    assert "no controller" in result.stderr
    assert result.stderr.count("\n") == 1
    required = penstock(*run, "--require", "--", "sh", "-c", "echo done")
    assert (required.stdout, required.returncode) == ("", 2)


def test_a_job_that_cannot_be_one_runs_plainly(state: StateDirectory, root: Path) -> None:
    """The managed directory is gone: no reason not to run what does not need it."""
    root.rmdir()
    result = penstock("run", "--state", state.folder, "--", "sh", "-c", "echo done; exit 3")
    assert (result.stdout, result.returncode) == ("done\n", 3)
    assert "running the command unmanaged" in result.stderr
    root.mkdir()


def test_a_second_up_is_refused_and_the_first_goes_on(up: Up) -> None:
    state = up()
    with pytest.raises(InputError, match="already up"):
        up()
    assert len(status(state)["io_nodes"]) == 2


def test_of_two_ups_at_once_one_comes_up(up: Up, tmp_path: Path) -> None:
    def attempt(_: int) -> bool:
        try:
            up()
        except (InputError, launcher.LaunchError):
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(attempt, range(2))) == [False, True]
    assert len(status(StateDirectory(tmp_path / "state"))["io_nodes"]) == 2


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"io_node": ("sh", "-c", "echo out of cheese >&2; exit 3", "sh")}, "out of cheese"),
        ({"io_node": ("no-such-program",)}, "cannot be started"),
        ({"io_node": ("sh", "-c", "exec sleep 60", "sh"), "serves_within": 0.5}, "after 0.5 s"),
        ({"settings": messages.Settings(scheduler="wrong")}, "unknown scheduler"),
    ],
    ids=["dies", "missing", "never serves", "wrong setting"],
)
def test_what_cannot_come_up_says_why_and_leaves_nothing(
    up: Up, tmp_path: Path, changes: dict[str, Any], text: str
) -> None:
    with pytest.raises(launcher.LaunchError, match=text):
        up(**changes)
    state = StateDirectory(tmp_path / "state")
    assert not state.is_up()
    assert [lock_holder(lock) for lock in state.folder.glob("io-node-*.lock")] == [None] * len(
        list(state.folder.glob("io-node-*.lock"))
    )
    assert not list(state.folder.glob("*.sock"))


def test_a_dead_io_node_is_replaced_and_jobs_hear_of_it(state: StateDirectory) -> None:
    controller, accepted = begin(state)
    with controller:
        first = {node.number: node.id for node in accepted.nodes}
        pids = {node.number: node.pid for node in accepted.nodes}
        os.kill(pids[0], signal.SIGKILL)
        assert map_of(controller) == {1: first[1]}
        after = map_of(controller)
        assert after[1] == first[1]
        assert after[0] != first[0]
    assert [node["deaths"] for node in status(state)["io_nodes"]] == [1, 0]


def test_one_that_keeps_dying_stays_down(up: Up) -> None:
    """Every restart serves and is killed: the sixth death within a minute is the last."""
    state = up(io_nodes=1)
    controller, accepted = begin(state)
    with controller:
        pid = accepted.nodes[0].pid
        for deaths in range(6):
            os.kill(pid, signal.SIGKILL)
            assert map_of(controller) == {}
            if deaths < 5:
                pid = controller.receive(messages.NodeMap, WAIT).nodes[0].pid
        (node,) = status(state)["io_nodes"]
        assert (node["state"], node["alive"], node["deaths"]) == ("down", False, 6)


def test_a_job_outlives_its_controller(state: StateDirectory, root: Path) -> None:
    program = "echo ready; read go; echo written > file; exit 9"
    command = [*PENSTOCK, "run", "--state", str(state.folder), "--", "sh", "-c", program]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, cwd=root, **pipes) as job:  # type: ignore[call-overload]
        assert job.stdout.readline() == "ready\n"
        kill(state)
        job.communicate("go\n", timeout=WAIT)
        assert job.returncode == 9
    assert (root / "file").read_text() == "written\n"
    assert penstock("status", "--state", state.folder).returncode == 2


def kill(state: StateDirectory) -> None:
    """Kill the controller, and wait until it is gone."""
    pid = lock_holder(state.lock)
    assert pid
    process = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert wait_for_exit(process, WAIT)
    os.close(process)


def test_what_a_killed_controller_left_is_ended_by_the_next(up: Up) -> None:
    state = up()
    left = [node["pid"] for node in status(state)["io_nodes"]]
    kill(state)
    assert [lock_holder(state.node_lock(k)) for k in range(2)] == left
    up(io_nodes=1)
    assert [lock_holder(state.node_lock(k)) for k in range(2)][1:] == [None]
    (node,) = status(state)["io_nodes"]
    assert node["alive"]
    assert node["pid"] not in left


def test_down_ends_what_a_killed_controller_left(state: StateDirectory) -> None:
    kill(state)
    assert launcher.down(state)
    assert [lock_holder(state.node_lock(k)) for k in range(2)] == [None, None]
    assert not launcher.down(state)


def test_down_says_which_io_node_it_waits_for(state: StateDirectory) -> None:
    """A stopped one finishes nothing until it is let go on; without a word `down` seems to hang."""
    pid = lock_holder(state.node_lock(1))
    assert pid
    os.kill(pid, signal.SIGSTOP)
    down = [*PENSTOCK, "down", "--state", str(state.folder)]
    with subprocess.Popen(down, stderr=subprocess.PIPE, text=True) as verb:
        try:
            assert verb.stderr is not None
            text = verb.stderr.readline()  # ends at the latest when `down` has killed it
        finally:
            os.kill(pid, signal.SIGCONT)
        assert verb.wait(WAIT) == 0
    assert "I/O node 1 (its process is stopped" in text
    assert f"kill -CONT {pid}" in text
    assert "node 0" not in text


def test_down_leaves_running_jobs_running_directly(state: StateDirectory) -> None:
    controller, accepted = begin(state)
    with controller:
        assert len(accepted.nodes) == 2
        result = penstock("down", "--state", state.folder)
        assert result.returncode == 0, result.stderr
        assert map_of(controller) == {}
        with pytest.raises(ConnectionError):
            controller.receive(messages.NodeMap, WAIT)
    assert not list(state.folder.glob("*.sock"))
    assert "kill switch" not in state.log.read_text()  # nobody turned it on
    again = penstock("down", "--state", state.folder)
    assert (again.returncode, again.stdout.split()[:2]) == (0, ["nothing", "is"])


def test_a_job_that_has_ended_cannot_be_remapped(state: StateDirectory) -> None:
    """It is not said to be unknown: people remap what they have just seen."""
    remap = ("remap", "--state", state.folder, "--direct")
    never = penstock(*remap, "test")
    assert (never.returncode, "no job is running" in never.stderr) == (2, True)
    controller, _ = begin(state)
    with controller:
        controller.ask(messages.JobExit(counters={}, status=0), messages.Done)
    late = penstock(*remap, "test")
    assert (late.returncode, "job 'test' has ended" in late.stderr) == (2, True)


def test_a_remap_is_over_when_the_job_has_it(state: StateDirectory) -> None:
    controller, accepted = begin(state, io_nodes=1)
    with controller:
        assert [node.number for node in accepted.nodes] == [0]
        remap = [*PENSTOCK, "remap", "--state", str(state.folder), "test"]
        with subprocess.Popen([*remap, "--io-nodes", "1,0", "--stripe", "64KiB"]) as verb:
            mapped = controller.receive(messages.NodeMap, WAIT)
            assert [node.number for node in mapped.nodes] == [1, 0]
            assert mapped.stripe == 65536
            assert verb.poll() is None
            controller.send(messages.JobCounters(counters={"maps": 1}))
            assert verb.wait(WAIT) == 0
        # A job that does not answer is reported, and not waited for.
        silent = penstock(*remap[len(PENSTOCK) :], "--direct")
        assert (silent.returncode, "does not answer" in silent.stderr) == (2, True)
        assert map_of(controller) == {}


def test_a_wrong_remap_says_what_is_wrong(state: StateDirectory) -> None:
    controller, _ = begin(state)
    with controller:
        for args, text in (
            (("tset.1", "--direct"), "did you mean 'test.1'"),
            (("test", "--io-nodes", "0,7"), "no I/O node 7"),
            (("test", "--io-nodes", "zero"), "not a list of numbers"),
            (("test",), "--direct"),
        ):
            wrong = penstock("remap", "--state", state.folder, *args)
            assert (wrong.returncode, text in wrong.stderr) == (2, True), wrong.stderr


def test_a_job_whose_connection_breaks_off_is_lost(state: StateDirectory) -> None:
    controller, _ = begin(state)
    with controller:
        controller.send(
            messages.JobCounters(counters={"write_bytes": 10, "forwarded_write_bytes": 7})
        )
        controller.ask(messages.GetStatus(), messages.Status)  # so that it has been heard
    site_status = status(state)
    assert site_status["jobs"][0]["state"] == "lost"
    assert (site_status["forwarded_bytes"], site_status["direct_bytes"]) == (7, 3)


def test_who_holds_a_lock_is_asked_before_it_is_killed(tmp_path: Path) -> None:
    """One that ignores SIGTERM is killed after its grace; nobody else ever is."""
    lock = tmp_path / "lock"
    program = (
        "import os, signal; from pathlib import Path\n"
        "from penstock.live.protocol.state_directory import hold_lock, write_holder\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"with hold_lock(Path({str(lock)!r})) as lock:\n"
        "    write_holder(lock, os.getpid()); print('held', flush=True); signal.pause()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert lock_holder(lock) == process.pid
        assert end_holders([lock], grace=0.1)
        assert process.wait(WAIT) == -signal.SIGKILL
    assert lock_holder(lock) is None
    assert not end_holders([lock])


@pytest.mark.security
def test_a_state_directory_must_be_ours_and_closed(tmp_path: Path, root: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    up = ("up", "--root", root, "--io-nodes", "1", "--state")
    result = penstock(*up, folder)
    assert (result.returncode, "by others" in result.stderr) == (2, True)
    if os.getuid() == 0:
        folder.chmod(0o700)
        os.chown(folder, 12345, -1)
        result = penstock(*up, folder)
        assert (result.returncode, "another user's" in result.stderr) == (2, True)
    result = penstock(*up, tmp_path / ("x" * 100))
    assert (result.returncode, "too long" in result.stderr) == (2, True)


@pytest.mark.security
@AS_ROOT
def test_root_rules_a_site_that_has_a_user_of_its_own(tmp_path: Path, root: Path) -> None:
    """But does not bring up there, nor trust what lies where anybody can put it."""
    site = tmp_path / "site"
    site.mkdir()
    state = site / "state"
    assert penstock("up", "--root", root, "--io-nodes", "0", "--state", state).returncode == 0
    try:
        os.chown(state, NOBODY, -1)
        assert penstock("status", "--state", state).returncode == 0
        assert penstock("mode", "off", "--state", state).returncode == 0
        refused = penstock("up", "--root", root, "--io-nodes", "0", "--state", state)
        assert (refused.returncode, "another user's" in refused.stderr) == (2, True)
        plain = penstock("run", "--state", state, "--", "true")
        assert (plain.returncode, "another user's" in plain.stderr) == (0, True)
        site.chmod(0o1777)
        refused = penstock("status", "--state", state)
        assert (refused.returncode, "another user's" in refused.stderr) == (2, True)
    finally:
        os.chown(state, 0, -1)
        assert penstock("down", "--state", state).returncode == 0
