"""`penstock run` as people and scripts use it: shells, pipes, MPI, signals, jobs inside jobs."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from limits import HANG
from live.other_users import AS_ROOT, NOBODY, as_nobody

from penstock.cli.verbs.run import run as run_verb
from penstock.errors import InputError
from penstock.live.agent.group_signals import GroupSignalProbe
from penstock.live.agent.page_server import library
from penstock.live.agent.runner import CannotRunError
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol import preload
from penstock.live.protocol.state_directory import StateDirectory

PENSTOCK = (sys.executable, "-m", "penstock.cli")
WAIT = HANG
KIB = 1 << 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def state(folder: Path) -> Iterator[StateDirectory]:
    (folder / "data").mkdir()
    state = StateDirectory(folder / "state")
    launcher.up(Deployment(state=str(state.folder), roots=[str(folder / "data")], io_nodes=2))
    yield state
    launcher.down(state)


@pytest.fixture
def root(folder: Path) -> Path:
    return folder / "data"


def command(state: StateDirectory, *args: str) -> list[str]:
    return [*PENSTOCK, "run", "--state", str(state.folder), *args]


def run(state: StateDirectory, *args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(state, *args),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **({"stdin": subprocess.DEVNULL} | options if "input" not in options else options),
    )


def usage(result: subprocess.CompletedProcess[str]) -> Any:
    """Return the output of --json."""
    return json.loads(result.stderr.splitlines()[-1])


def test_verbs_that_start_often_import_nothing_heavy() -> None:
    """NumPy, SciPy, Matplotlib and Rich take longer to import than a small job takes to run."""
    heavy = "{'numpy', 'scipy', 'matplotlib', 'rich'}"
    modules = "penstock.cli.verbs.run, penstock.cli.verbs.ionode"
    program = f"import sys, penstock.cli.__main__, {modules}; print({heavy} & set(sys.modules))"
    completed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert completed.stdout == "set()\n", completed.stderr


@pytest.mark.parametrize(
    ("program", "status", "message"),
    [
        ("no-such-command", 127, "penstock: no-such-command: command not found\n"),
        ("./nowhere/at-all", 127, "penstock: ./nowhere/at-all: No such file or directory\n"),
        ("/", 126, "penstock: /: Permission denied\n"),
        ("", 127, "penstock: '': command not found\n"),
    ],
)
def test_a_command_that_cannot_run_is_reported_as_in_shells(
    state: StateDirectory, program: str, status: int, message: str
) -> None:
    result = run(state, "--", program)
    assert (result.returncode, result.stderr, result.stdout) == (status, message, "")


NOWHERE, NO_PROGRAM = (127, "prog: command not found"), (126, "prog: Permission denied")


@pytest.mark.parametrize("there", [False, True])
def test_directories_of_path_that_may_not_be_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    """They make execvp report "Permission denied" for a command that does not exist."""
    closed, searched = tmp_path / "closed", tmp_path / "searched"
    closed.mkdir(mode=0)
    searched.mkdir()
    if there:
        (searched / "prog").touch(0o644)
    monkeypatch.setenv("PATH", f"{closed}:{searched}")
    error = CannotRunError("prog", PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
    assert (error.status, str(error)) == (NO_PROGRAM if there else NOWHERE)


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("there", [False, True])
def test_a_file_among_the_directories_of_path(
    state: StateDirectory, tmp_path: Path, up: bool, there: bool
) -> None:
    """It makes execvp report "Not a directory" for a command that does not exist."""
    (tmp_path / "file").touch()
    if there:
        (tmp_path / "prog").touch(0o644)
    environment = os.environ | {"PATH": f"{tmp_path}:{tmp_path / 'file'}"}
    result = run(state if up else StateDirectory(tmp_path / "none"), "--", "prog", env=environment)
    status, message = NO_PROGRAM if there else NOWHERE
    assert (result.returncode, result.stderr.splitlines()[-1]) == (status, f"penstock: {message}")


def test_a_script_whose_interpreter_is_not_there(state: StateDirectory, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    result = run(state, "--", str(script))
    assert (result.returncode, "interpreter" in result.stderr) == (127, True)


@pytest.mark.parametrize("up", [True, False])
def test_a_script_without_an_interpreter_line_runs_in_the_shell(
    state: StateDirectory, tmp_path: Path, up: bool
) -> None:
    """As execvp, and with it env and nice, runs it."""
    script = tmp_path / "script"
    script.write_text('echo "$1"; exit 5\n')
    script.chmod(0o755)
    result = run(state if up else StateDirectory(tmp_path / "none"), "--", str(script), "a b")
    assert (result.stdout, result.returncode) == ("a b\n", 5)


def test_standard_input_and_a_pipeline_pass_through(state: StateDirectory, root: Path) -> None:
    text = "line\n" * 20_000
    shell = "cat > given && sort given | tr a-z A-Z | tee shouted | wc -l"
    result = run(state, "--json", "--", "sh", "-c", shell, input=text, cwd=root)
    assert result.stdout.strip() == "20000"
    assert (root / "shouted").read_text() == text.upper()
    completed = usage(result)
    # cat may leave its copying to the kernel, where the kernel can; tee and sort are forwarded.
    assert completed["forwarded_bytes"] >= 2 * len(text)
    assert completed["fail_opens"] == 0


def test_a_command_that_changes_directory(
    state: StateDirectory, root: Path, tmp_path: Path
) -> None:
    shell = f"cd {root} && dd if=/dev/zero of=deep bs=4k count=4 status=none"
    result = run(state, "--json", "--", "sh", "-c", shell, cwd=tmp_path)
    assert usage(result)["forwarded_bytes"] == 16 * KIB


@pytest.mark.skipif(shutil.which("mpirun.openmpi") is None, reason="no Open MPI")
def test_what_a_command_leaves_running_is_said(state: StateDirectory, root: Path) -> None:
    """It has no turns from then on, and is not counted; its data is right."""
    ends = f"cat >{root}/after <{root}/pipe"
    os.mkfifo(root / "pipe")
    left = run(state, "sh", "-c", f"setsid sh -c '{ends}' >/dev/null 2>&1 & exit 3")
    assert left.returncode == 3
    assert ": 1 of its processes still run, from now on without turns" in left.stderr
    (root / "pipe").write_text("right")
    assert run(state, "sh", "-c", "sleep 0.1 & wait").stderr == ""
    again = run(state, "--json", "sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!")
    os.kill(int(again.stdout), signal.SIGKILL)
    assert json.loads(again.stderr)["left_behind"] == 1
    assert "left_behind" not in json.loads(run(state, "--json", "true").stderr)


def test_an_mpi_program_is_one_job(state: StateDirectory, root: Path) -> None:
    write = "dd if=/dev/zero of=rank.$OMPI_COMM_WORLD_RANK bs=64k count=8 status=none"
    mpirun = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    result = run(state, "--json", "--", *mpirun, "sh", "-c", write, cwd=root)
    assert result.returncode == 0, result.stderr
    assert usage(result)["forwarded_bytes"] == 2 * 512 * KIB
    assert [(root / f"rank.{k}").stat().st_size for k in range(2)] == [512 * KIB] * 2


def test_a_job_inside_a_job_counts_for_the_inner_one(state: StateDirectory, root: Path) -> None:
    write = ["dd", "if=/dev/zero", "of=nested", "bs=64k", "count=4", "status=none"]
    inner = command(state, "--json", "--name", "inner", "--", *write)
    result = run(state, "--json", "--name", "outer", "--", *inner, cwd=root)
    first, second = (json.loads(line) for line in result.stderr.splitlines())
    assert (first["job"].split(".")[0], first["forwarded_bytes"]) == ("inner", 256 * KIB)
    assert (second["job"].split(".")[0], second["forwarded_bytes"]) == ("outer", 0)


@pytest.mark.parametrize("separator", [":", " "])
def test_other_preloaded_libraries_stay_and_ours_comes_once(
    state: StateDirectory, separator: str
) -> None:
    others = ["libm.so.6", "libdl.so.2"]
    environment = os.environ | {"LD_PRELOAD": separator.join(others)}
    show = ["sh", "-c", "echo $LD_PRELOAD"]
    result = run(state, "--", *command(state, "--", *show), env=environment)
    assert result.stdout.strip().split(":") == [str(library()), *others]


@pytest.mark.parametrize(
    ("program", "name"),
    [("x" * 200, "x" * 40), ("wéird näme!", "w-ird-n-me-"), ("-dash", "job"), ("...", "job")],
)
def test_odd_programs_give_plain_job_names(
    state: StateDirectory, tmp_path: Path, program: str, name: str
) -> None:
    (tmp_path / program).write_text("#!/bin/sh\n")
    (tmp_path / program).chmod(0o755)
    result = run(state, "--json", "--", f"./{program}", cwd=tmp_path)
    assert usage(result)["job"].rpartition(".")[0] == name


@pytest.mark.parametrize("name", ["", "x" * 41, "a/b", "-x", "a\nb"])
def test_odd_job_names_are_refused(state: StateDirectory, name: str) -> None:
    result = run(state, f"--name={name}", "--", "true")
    assert (result.returncode, "up to 40 letters" in result.stderr) == (2, True)


# It uses sigwait: a Python handler that is due just before a pause would run after it.
COUNTS = (
    "import signal\n"
    "awaited = {signal.SIGUSR1, signal.SIGTERM}\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, awaited)\n"
    "print('ready', flush=True)\n"
    "while signal.sigwait(awaited) != signal.SIGTERM: print('got it', flush=True)\n"
)


@pytest.mark.parametrize("to_group", [True, False], ids=["to the group", "to penstock run"])
def test_a_signal_comes_to_the_command_once(state: StateDirectory, to_group: bool) -> None:
    """A signal to the group reaches it directly, a signal to `penstock run` is forwarded.

    `penstock run` is stopped until the command has the group's signal, so that two signals do not
    merge. SIGTERM has the higher number: it is delivered after any forwarded signal.
    """
    args = command(state, "--", sys.executable, "-c", COUNTS)
    with subprocess.Popen(args, stdout=subprocess.PIPE, text=True, start_new_session=True) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "ready\n"
        if to_group:
            os.kill(job.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, job.pid, os.WSTOPPED)
            os.killpg(job.pid, signal.SIGUSR1)
            assert job.stdout.readline() == "got it\n"
            os.kill(job.pid, signal.SIGTERM)
            os.kill(job.pid, signal.SIGCONT)
            assert job.stdout.read() == ""
        else:
            os.kill(job.pid, signal.SIGUSR1)
            assert job.stdout.readline() == "got it\n"
            os.kill(job.pid, signal.SIGTERM)
        assert job.wait(WAIT) == 0


def test_a_background_job_of_a_script_ignores_the_interrupt(state: StateDirectory) -> None:
    """Shells start them with SIGINT ignored, and the command inherits that."""
    ignored = "import signal; print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)"
    args = " ".join(command(state, "--", sys.executable, "-c", f"'{ignored}'"))
    completed = subprocess.run(
        ["sh", "-c", f"{args} & wait"], capture_output=True, text=True, timeout=60, check=False
    )
    assert completed.stdout == "True\n", completed.stderr


INTERRUPTED = """
import pathlib, signal, sys, threading, time
from penstock.live.agent import runner
from penstock.live.protocol.state_directory import StateDirectory

def interrupt(*_):
    raise KeyboardInterrupt

def elsewhere():
    time.sleep(0.2)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

signal.signal(signal.SIGTERM, interrupt)
threading.Thread(target=elsewhere).start()
try:
    runner.run(StateDirectory(pathlib.Path(sys.argv[1])), ["sleep", "1"], name="sleeps")
except KeyboardInterrupt:
    print([thread.name for thread in threading.enumerate()])
"""


def test_a_handler_that_raises_ends_the_job_and_leaves_nothing_behind(
    state: StateDirectory,
) -> None:
    """A signal that another thread of the caller handles does not reach the command."""
    completed = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(state.folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert completed.stdout == "['MainThread']\n", completed.stderr


def test_the_probe_reports_each_signal_once_and_no_other() -> None:
    with GroupSignalProbe({signal.SIGUSR1, signal.SIGUSR2}) as probe:
        os.kill(probe.pid, signal.SIGUSR1)
        assert not probe.received(signal.SIGUSR2)
        assert probe.received(signal.SIGUSR1)
        assert not probe.received(signal.SIGUSR1)
        os.kill(probe.pid, signal.SIGKILL)
        assert not probe.received(signal.SIGUSR1)


def test_status_says_since_when_an_io_node_is_stopped_and_what_to_do(state: StateDirectory) -> None:
    def status(*args: str) -> str:
        completed = [*PENSTOCK, "status", "--state", str(state.folder), *args]
        return subprocess.run(
            completed, capture_output=True, text=True, timeout=60, check=True
        ).stdout

    pid = json.loads(status("--json"))["io_nodes"][1]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        message = status()
        (node,) = (n for n in json.loads(status("--json"))["io_nodes"] if n["number"] == 1)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert "I/O node 1 has not answered for" in message
    assert f"kill -CONT {pid}" in message
    assert (node["state"], node["alive"]) == ("not answering", True)
    assert node["silent_seconds"] >= 4  # two questions, 2 s each
    assert json.loads(status("--json"))["io_nodes"][1]["state"] == "serving"


def test_a_library_that_cannot_be_preloaded_is_refused(tmp_path: Path) -> None:
    """The linker would split its name, and complain in every process of the job."""
    folder = tmp_path / "with space"
    folder.mkdir()
    (folder / "libpenstock_client.so").touch()
    with pytest.raises(InputError, match="cannot be preloaded"):
        preload.library("libpenstock_client.so", [str(folder)])


@AS_ROOT
@pytest.mark.parametrize("mode", [0o000, 0o700, 0o711])
@pytest.mark.parametrize("own", [True, False])
def test_where_the_state_directory_cannot_be_read_the_command_runs_unmanaged(
    capfd: pytest.CaptureFixture[str], own: bool, mode: int
) -> None:
    """Others cannot read that of --all-users (0711), and their jobs run anyway."""
    with TemporaryDirectory(dir="/tmp") as name:  # pytest's own folder is closed to other users
        Path(name).chmod(0o777)
        folder, output = Path(name) / "state", Path(name) / "output"
        folder.mkdir()
        (folder / "controller.lock").touch(mode=0o600)
        folder.chmod(mode)
        if own:
            os.chown(folder, NOBODY, NOBODY)
        arguments = ["--state", str(folder), "--", "sh", "-c", f"echo ran >{output}"]
        as_nobody(lambda: run_verb.main(arguments, standalone_mode=False))
        assert output.read_text() == "ran\n"
        folder.chmod(0o700)
    assert "running the command unmanaged" in capfd.readouterr().err
