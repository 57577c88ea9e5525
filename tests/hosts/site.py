"""A site of seven hosts: a controller, two I/O nodes, four compute hosts."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from hosts import job
from hosts.network import Host, hosts
from limits import HANG

PENSTOCK = (sys.executable, "-m", "penstock.cli")
COMPUTE = ("h0", "h1", "h2", "h3")
PORT, DATA_PORT = 7000, 7100
LEASE = 2.0
WAIT = HANG


class Job:
    """A job on a host: its process, and what it says."""

    def __init__(self, site: "Site", host: Host, file: Path, *words: str) -> None:
        self.host, self.file = host, file
        where = ("--controller", f"{site.controller.address}:{PORT}", "--key-file", str(site.key))
        run = ("run", *where, "--state", str(site.folder / host.name), "--name", host.name)
        program = (sys.executable, str(Path(job.__file__)), str(file), *words)
        self.process = subprocess.Popen(
            host.command(*PENSTOCK, *run, "--json", "--", *program),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.times: dict[tuple[str, int], float] = {}
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def until(self, what: str, number: int = 0, within: float = WAIT) -> float:
        """Return the time of this line of its output."""
        end = time.monotonic() + within
        while (what, number) not in self.times:
            word, k, when = self._lines.get(timeout=max(end - time.monotonic(), 0.001)).split()
            self.times[word, int(k)] = float(when)
        return self.times[what, number]

    def go_on(self) -> None:
        """Let it leave the place where it holds."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def ended(self) -> dict[str, Any]:
        """Wait for its end, with status 0; return what `penstock run --json` prints."""
        status = self.process.wait(timeout=WAIT)
        assert self.process.stderr is not None
        stderr = self.process.stderr.read()
        assert status == 0, stderr
        self.until("done", within=1.0)
        result: dict[str, Any] = json.loads(stderr.splitlines()[-1])
        return result

    def close(self) -> None:
        """End it and its command, if they have not ended."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=WAIT)
        self._thread.join(WAIT)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def phases(self) -> list[tuple[float, float]]:
        """Return from when to when it transferred."""
        began = {k: when for (what, k), when in self.times.items() if what == "began"}
        return [(began[k], self.times["ended", k]) for k in began]


class Site:
    """What runs on the hosts; `folder` is the file system that all of them have."""

    def __init__(self, folder: Path, made: dict[str, Host], stack: ExitStack) -> None:
        self.folder, self.hosts, self._stack = folder, made, stack
        self.controller = made["c"]
        self.root, self.key, self.state = folder / "root", folder / "key", folder / "c"
        self.log = self.state / "controller.log"
        self._jobs: list[Job] = []
        self._nodes: dict[int, subprocess.Popen[str]] = {}
        self.root.mkdir()

    def penstock(self, host: Host, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a verb on a host."""
        command = host.command(*PENSTOCK, *words)
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def up(self) -> None:
        """Bring the controller up, and the I/O nodes that register with it."""
        made = self.penstock(self.controller, "key", str(self.key))
        assert made.returncode == 0, made.stderr
        options: tuple[str, ...] = (
            "--root",
            str(self.root),
            "--io-nodes",
            "0",
            "--remote-io-nodes",
            "2",
        )
        options += ("--policy", "exclusive-fcfs", "--mode", "enforce", "--stripe", "1 MiB")
        options += ("--allocation", "own")  # files are striped over all I/O nodes
        options += ("--set", f"live.lease={LEASE} s", "--state", str(self.state))
        listen = ("--listen", f"{self.controller.address}:{PORT}", "--key-file", str(self.key))
        up = self.penstock(self.controller, "up", *options, *listen)
        assert up.returncode == 0, up.stderr
        self._stack.callback(self.penstock, self.controller, "down", "--state", str(self.state))
        for number in range(2):
            self.start_node(number)
        self.await_nodes("serving", "serving")

    def start_node(self, number: int) -> None:
        """Start an I/O node on its host."""
        host = self.hosts[f"io{number}"]
        own = self.folder / host.name
        command: tuple[str, ...] = ("--socket", f"{own}.sock", "--control", f"{own}.control")
        command += ("--with-parent",)
        command += ("--listen", f"{host.address}:{DATA_PORT}", "--number", str(number))
        command += ("--controller", f"{self.controller.address}:{PORT}")
        command += ("--key-file", str(self.key), "--root", str(self.root), "--coherent")
        process = subprocess.Popen(
            host.command(*PENSTOCK, "ionode", *command), stdout=subprocess.DEVNULL, text=True
        )
        self._nodes[number] = process
        self._stack.callback(process.wait, timeout=WAIT)
        self._stack.callback(process.kill)

    def kill_node(self, number: int) -> None:
        """Kill an I/O node."""
        self._nodes[number].kill()
        self._nodes[number].wait(timeout=WAIT)

    def status(self) -> dict[str, Any]:
        """Return how things are."""
        result = self.penstock(self.controller, "status", "--state", str(self.state), "--json")
        assert result.returncode == 0, result.stderr
        status: dict[str, Any] = json.loads(result.stdout)
        return status

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the first status of which that holds."""
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            if holds(status := self.status()):
                return status
        raise AssertionError(f"still {status}\n{self.log.read_text()}")

    def await_nodes(self, *states: str) -> dict[str, Any]:
        """Return the status once the I/O nodes' states are these."""
        return self.until(lambda status: tuple(n["state"] for n in status["io_nodes"]) == states)

    def doing(self, status: dict[str, Any]) -> dict[str, str]:
        """Return what the running jobs do, by name."""
        running = [j for j in status["jobs"] if j["state"] == "running"]
        return {j["name"]: j["doing"] for j in running}

    def start(self, host: str, *words: str) -> Job:
        """Start a job on a compute host, which writes a file of the host's name."""
        made = Job(self, self.hosts[host], self.root / host, *words)
        self._jobs.append(made)
        return made

    def mend(self) -> None:
        """End what a test left, and put all cables back."""
        while self._jobs:
            self._jobs.pop().close()
        for host in self.hosts.values():
            host.bring_back()
        self.await_nodes("serving", "serving")

    def check_file(self, made: Job, blocks: int) -> None:
        """Compare a job's file with what it must be, to the byte."""
        expected = b"".join(job.block(str(made.file), k) for k in range(blocks))
        assert made.file.read_bytes() == expected, made.file


@contextmanager
def site_of(folder: Path) -> Iterator[Site]:
    """Make the site; nothing is left of it."""
    with ExitStack() as stack:
        made = stack.enter_context(hosts(["c", "io0", "io1", *COMPUTE]))
        site = Site(folder, made, stack)
        site.up()
        yield site


def can_make_hosts() -> bool:
    """Say whether this user can make network namespaces."""
    made = subprocess.run(["unshare", "-n", "true"], check=False, capture_output=True)
    return os.geteuid() == 0 and made.returncode == 0
