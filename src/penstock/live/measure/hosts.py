"""The launchers on the hosts of an allocation, as a measurement sees them."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from multiprocessing import connection
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec

from penstock.errors import InputError
from penstock.live.deployment.launcher import LaunchError
from penstock.live.measure import host_launcher, host_messages, slurm_hosts
from penstock.live.measure.host_messages import (
    CheckRoot,
    Done,
    Failed,
    Hello,
    HostMessage,
    Introduction,
    RanksEnded,
    RunRanks,
    SealedConnection,
)
from penstock.live.measure.host_ranks import CLOCK, TIME
from penstock.live.measure.rank import BROKEN, GO, READY
from penstock.live.measure.scratch import INTERRUPTS
from penstock.live.protocol import client, messages, site_key
from penstock.live.protocol.site_key import SiteKey

STARTS_WITHIN, PROVES_WITHIN, ENDS_WITHIN = 60.0, 5.0, 10.0
"""Seconds for all launchers to start, for one to prove the key, and for srun to end."""
SAYS_WITHIN = 1.0
"""Seconds for srun to say why a host has gone."""
_ENVIRONMENT_OF_A_JOB = ("PENSTOCK_AGENT",)


class Hosts:
    """One launcher on each host, started by srun; a context manager."""

    def __init__(
        self,
        hosts: Iterable[str],
        key: SiteKey,
        folder: Path,
        *,
        starts_within: float = STARTS_WITHIN,
    ) -> None:
        self.hosts = tuple(hosts)
        self._key = key
        self._log = folder / "srun.log"
        self._starts_within = starts_within
        self._connections: dict[str, Connection] = {}
        self._sealed: dict[str, SealedConnection] = {}
        self._srun: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Hosts":
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all launchers; what they started ends with them."""
        for one in self._connections.values():
            one.close()
        self._connections.clear()
        if self._srun is not None:
            try:
                self._srun.wait(ENDS_WITHIN)
            except subprocess.TimeoutExpired:
                self._srun.terminate()
                with suppress(subprocess.TimeoutExpired):
                    self._srun.wait(ENDS_WITHIN)
            self._srun.kill()
            self._srun.wait()

    def check_root(self, root: Path) -> None:
        """Raise InputError unless all hosts see a file that is written below the root."""
        content = secrets.token_hex(16)
        file = root / f".penstock-{content[:8]}"
        try:
            file.write_text(content)
            for host in self.hosts:
                try:
                    self.ask({host: CheckRoot(file=str(file), content=content)}, Done)
                except InputError as error:
                    raise InputError(
                        f"--root {root}: {error}; give a directory that all hosts see"
                    ) from error
        except OSError as error:
            raise InputError(f"--root {root}: {error.strerror}") from error
        finally:
            file.unlink(missing_ok=True)

    def ask(self, questions: Mapping[str, HostMessage], answer: Any) -> dict[str, Any]:
        """Return the answers of several hosts; LaunchError names a host that fails."""
        for host, message in questions.items():
            self._send(host, message)
        return {
            host: self._decoded(host, self._receive(host, answer.__name__), answer)
            for host in questions
        }

    def run(self, runs: Mapping[str, RunRanks]) -> dict[str, RanksEnded]:
        """Run ranks on several hosts, and release all of them together at their barriers.

        The results are in the order in which hosts ended.
        """
        for host, message in runs.items():
            self._send(host, message)
        names = {one: host for host, one in self._connections.items()}
        running = {self._connections[host] for host in runs}
        ended: dict[str, RanksEnded] = {}
        waiting: set[Connection] = set()
        while len(ended) < len(runs):
            for one in connection.wait(list(names)):
                assert isinstance(one, Connection)
                host = names[one]
                text = self._receive(host, "result")
                if text == TIME:
                    self._pass_on(one, CLOCK.pack(time.monotonic()))
                elif text == READY:
                    waiting.add(one)
                else:
                    ended[host] = self._decoded(host, text, RanksEnded)
                    if ended[host].status - 128 in INTERRUPTS:
                        number = signal.Signals(ended[host].status - 128)
                        why = f"{number.name} ended its ranks: {self._why()}"
                        raise LaunchError(f"host {host}: {why}")
                    running.discard(one)
                    waiting.discard(one)  # its ranks were ended as they waited
                    if failed(ended[host]):
                        for other in running:
                            self._pass_on(other, BROKEN)
            if waiting and (ended or len(waiting) == len(runs)):
                for one in waiting:
                    self._pass_on(one, BROKEN if ended else GO)
                waiting.clear()
        return ended

    def _start(self) -> None:
        with socket.create_server((host_launcher.ANY_ADDRESS, 0), backlog=128) as listener:
            words = [sys.executable, "-P", "-m", host_launcher.__name__]
            with self._log.open("ab") as log:
                self._srun = subprocess.Popen(
                    slurm_hosts.srun_command(len(self.hosts), words),
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env=_environment(),
                    start_new_session=True,  # an interrupt of the terminal is for us
                )
            introduction = Introduction(
                host=socket.gethostname(),
                port=listener.getsockname()[1],
                key=self._key.secret.hex(),
            )
            assert self._srun.stdin is not None
            with suppress(BrokenPipeError), self._srun.stdin as stdin:
                stdin.write(msgspec.json.encode(introduction) + b"\n")
            self._accept(listener)

    def _accept(self, listener: socket.socket) -> None:
        """Accept the connection of every host's launcher."""
        assert self._srun is not None
        deadline = time.monotonic() + self._starts_within
        listener.settimeout(0.2)
        while missing := [host for host in self.hosts if host not in self._connections]:
            names = ", ".join(missing)
            if self._srun.poll() is not None:
                raise LaunchError(f"srun started no launcher on {names}: {self._last_line()}")
            if time.monotonic() > deadline:
                raise LaunchError(
                    f"no launcher on {names} after {self._starts_within:g} s: {self._last_line()}"
                )
            with suppress(TimeoutError):
                accepted, _ = listener.accept()
                accepted.settimeout(None)
                client.set_loss_timeout(accepted, host_launcher.SILENCE)
                one = Connection(accepted.detach())
                host, sealed = self._admitted(one) or ("", None)
                if sealed is not None and host in missing:
                    self._connections[host], self._sealed[host] = one, sealed
                else:
                    one.close()

    def _admitted(self, one: Connection) -> tuple[str, SealedConnection] | None:
        """Return the host at the other end, or None if it does not prove the key."""
        ours = site_key.nonce()
        try:
            host_messages.send(one, messages.Challenge(nonce=ours))
            self._await(one)
            proof = host_messages.receive(one, messages.Proof)
            if not self._key.proves("client", ours, proof.nonce, proof.proof):
                return None
            own = self._key.proof("controller", ours, proof.nonce)
            host_messages.send(one, messages.Proof(nonce=ours, proof=own))
            sealed = SealedConnection(one, self._key.seals("controller", ours, proof.nonce))
            self._await(one)
            return sealed.decode(one.recv_bytes(), Hello).host, sealed
        except (EOFError, OSError):
            return None

    @staticmethod
    def _await(one: Connection) -> None:
        if not one.poll(PROVES_WITHIN):
            raise TimeoutError

    def _send(self, host: str, message: HostMessage) -> None:
        try:
            self._sealed[host].send(message)
        except OSError:
            raise self._lost(host) from None

    def _receive(self, host: str, what: str) -> bytes:
        try:
            return self._connections[host].recv_bytes()
        except (EOFError, OSError):
            raise self._lost(host, what) from None

    @staticmethod
    def _pass_on(one: Connection, text: bytes) -> None:
        with suppress(OSError):  # its end is noticed when it is read
            one.send_bytes(text)

    def _decoded(self, host: str, text: bytes, kind: Any) -> Any:
        try:
            result = self._sealed[host].decode(text, kind | Failed)
        except ConnectionError as error:
            raise LaunchError(f"host {host}: {error}") from error
        if isinstance(result, Failed):
            if result.wrong_input:
                raise InputError(f"host {host}: {result.error}")
            raise LaunchError(f"host {host}: {result.error}; {self._why()}")
        return result

    def _lost(self, host: str, what: str = "answer") -> LaunchError:
        return LaunchError(f"host {host} has gone and left no {what}: {self._why()}")

    def _why(self) -> str:
        """Return what srun says of a step that ends."""
        assert self._srun is not None
        with suppress(subprocess.TimeoutExpired):
            self._srun.wait(SAYS_WITHIN)
        return self._last_line()

    def _last_line(self) -> str:
        lines = self._log.read_text(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "srun says nothing")


def failed(ended: RanksEnded) -> bool:
    """Tell whether a rank of a host failed."""
    return bool(ended.status) or any(one.error for one in ended.results.values())


def _environment() -> dict[str, str]:
    """Return srun's environment: tasks are no jobs of a deployment that manages the allocation."""
    kept = {k: v for k, v in os.environ.items() if k not in _ENVIRONMENT_OF_A_JOB}
    return kept | {"PENSTOCK_DISABLE": "1"}
