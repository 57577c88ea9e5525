"""Real I/O nodes for tests: `penstock ionode` processes, and what they say they did."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import msgspec

from penstock.live import wire

PATIENCE = 20.0
BECOME = "import os\ndef become(user): os.setgroups([]); os.setgid(user); os.setuid(user)\n"
"""For programs that let go of root once they run: the interpreter may be root's alone."""


def _as_user(user: int) -> list[str]:
    program = "from penstock import cli\nfrom penstock.cli import ionode\n"
    program += f"{BECOME}become({user})\ncli.main()\n"
    return [sys.executable, "-c", program]


class RealNode:
    """One I/O node process; a context manager."""

    def __init__(
        self,
        folder: Path,
        number: int = 0,
        *options: str,
        user: int | None = None,
        **environment: str,
    ) -> None:
        self.control = folder / f"node{number}.control"
        address = folder / f"node{number}.sock"
        self.node = wire.Node(number=number, id=1000 + number, address=str(address))
        command = [sys.executable, "-m", "penstock.cli"] if user is None else _as_user(user)
        command += ["ionode", "--with-parent"]
        command += ["--socket", str(address), "--control", str(self.control)]
        command += ["--number", str(number), "--id", str(self.node.id), "--json", *options]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the I/O node did not start"
        self.port: int | None = msgspec.json.decode(line).get("tcp_port")

    def __enter__(self) -> "RealNode":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)

    @property
    def remote(self) -> wire.Node:
        """Where clients on other hosts find it."""
        return msgspec.structs.replace(
            self.node, transport="tcp", address="127.0.0.1", port=self.port
        )

    def ask(self, message: wire.Message) -> wire.Message:
        """Send one control message, and return the answer."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(str(self.control))
            connection.sendall(msgspec.json.encode(message) + b"\n")
            line = connection.makefile("rb").readline()
        return msgspec.json.decode(line, type=wire.Done | wire.Measured | wire.Failed)

    def measured(self) -> wire.Measured:
        """Return what it did so far."""
        answer = self.ask(wire.Measure())
        assert isinstance(answer, wire.Measured)
        return answer
