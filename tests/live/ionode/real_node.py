"""Real I/O nodes for tests: `penstock ionode` processes, and what they say they did."""

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from limits import HANG
from live.ionode.frames import TOKEN, Carrier

from penstock.live.protocol import messages

PATIENCE = HANG
BECOME = "import os\ndef become(user): os.setgroups([]); os.setgid(user); os.setuid(user)\n"
"""For programs that let go of root once they run: the interpreter may be root's alone."""


def _as_user(user: int) -> list[str]:
    # Root's interpreter and configuration may not be readable to the user: import first.
    program = "import os, penstock.config.loading\nfrom penstock.cli import main\n"
    program += "from penstock.cli.verbs import ionode\nos.environ['HOME'] = '/'\n"
    program += f"{BECOME}become({user})\nmain()\n"
    return [sys.executable, "-c", program]


class RealNode:
    """One I/O node process; a context manager."""

    def __init__(
        self,
        folder: Path,
        number: int = 0,
        *options: str,
        carries: Path | None = None,
        user: int | None = None,
        file_size: int | None = None,
        descriptors: int | None = None,
        environment: Mapping[str, str] | None = None,
        in_place_of: Mapping[Path, Path] | None = None,
    ) -> None:
        """Start one; it sees the files `in_place_of` those of the host."""
        self.folder, self.control = folder, folder / f"node{number}.control"
        self.socket = folder / f"node{number}.sock"
        self.node = messages.Node(number=number, id=1000 + number, address=str(self.socket))
        self._carries = carries
        if carries is not None:
            token = folder / f"node{number}.token"
            token.write_bytes(TOKEN)
            options += ("--listen", "127.0.0.1:0", "--token-file", str(token))
            options += ("--root", str(carries))
        command = [sys.executable, "-m", "penstock.cli"] if user is None else _as_user(user)
        for of_host, file in (in_place_of or {}).items():
            mounts = f'mount --bind {file} {of_host}; exec "$@"'
            command = ["unshare", "--mount", "sh", "-ec", mounts, "sh", *command]
        if descriptors is not None:
            command = ["prlimit", f"--nofile={descriptors}:{descriptors}", *command]
        command += ["ionode", "--with-parent"]
        command += ["--socket", str(self.socket), "--control", str(self.control)]
        command += ["--number", str(number), "--id", str(self.node.id), "--json", *options]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | dict(environment or {}),
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the I/O node did not start"
        self.announcement: dict[str, Any] = msgspec.json.decode(line)
        if file_size is not None:
            limits = (file_size, file_size)
            resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, limits)
        self._controlling: socket.socket | None = None

    def __enter__(self) -> "RealNode":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)
        if self._controlling is not None:
            self._controlling.close()

    @property
    def remote(self) -> messages.Node:
        """Where clients on other hosts find it."""
        return msgspec.structs.replace(
            self.node, transport="tcp", address="127.0.0.1", port=self.announcement["tcp_port"]
        )

    @property
    def carrier(self) -> Carrier:
        """Where it carries data."""
        assert self._carries is not None
        return Carrier(port=self.announcement["tcp_port"], root=self._carries)

    def ask(self, message: messages.Message) -> messages.Message:
        """Return the answer; over one connection, so that descriptors can be counted."""
        if self._controlling is None:
            self._controlling = socket.socket(socket.AF_UNIX)
            self._controlling.settimeout(PATIENCE)
            self._controlling.connect(str(self.control))
        self._controlling.sendall(msgspec.json.encode(message) + b"\n")
        line = b""
        while not line.endswith(b"\n"):
            part = self._controlling.recv(1 << 16)
            assert part, "the I/O node is gone"
            line += part
        return msgspec.json.decode(
            line,
            type=messages.Done
            | messages.NodeCounters
            | messages.NodeObservation
            | messages.Failure,
        )

    def measured(self) -> messages.NodeCounters:
        """Return what it did so far."""
        answer = self.ask(messages.GetCounters())
        assert isinstance(answer, messages.NodeCounters)
        return answer

    def until(self, holds: Callable[[messages.NodeCounters], bool]) -> messages.NodeCounters:
        """Return the first measurement of which that holds."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if holds(measured := self.measured()):
                return measured
        raise AssertionError(f"still {measured}")

    def stand_still(self) -> None:
        """Stop it, and return when no thread of it runs any more."""
        self.process.send_signal(signal.SIGSTOP)
        end = time.monotonic() + PATIENCE
        for thread in Path(f"/proc/{self.process.pid}/task").iterdir():
            while (thread / "stat").read_text().rpartition(")")[2].split()[0] != "T":
                assert time.monotonic() < end

    def go_on(self) -> None:
        """Let it run again."""
        self.process.send_signal(signal.SIGCONT)

    def memory(self) -> int:
        """Return its resident bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * next(int(line.split()[1]) for line in status.splitlines() if "VmRSS" in line)

    def descriptors(self) -> int:
        """Return how many it has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


Serve = Callable[..., RealNode]
