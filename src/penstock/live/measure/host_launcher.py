"""The launcher on one host of a measurement: starts its I/O nodes, and the ranks of each run.

`python -m penstock.live.measure.host_launcher` is started by srun, once per host. It connects to
the measurement, which its standard input names, and ends with that connection.
"""

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self

import msgspec

from penstock.errors import InputError
from penstock.files import reason
from penstock.live.agent import runner
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import IO_NODE
from penstock.live.measure import host_messages, host_ranks
from penstock.live.measure.host_messages import (
    CheckRoot,
    Configure,
    Done,
    EndWatch,
    Failed,
    Hello,
    HostMessage,
    Introduction,
    IoNodesServe,
    RanksEnded,
    RunRanks,
    SealedConnection,
    StartIoNodes,
    ToLauncher,
    Watch,
    Watched,
)
from penstock.live.measure.host_ranks import CLOCK, HostNotes, HostPlan
from penstock.live.measure.io_node_work import counters
from penstock.live.measure.observation_poller import ObservationPoller
from penstock.live.measure.rank import BROKEN, GO, RankOperation, RankResult
from penstock.live.measure.scratch import InterruptedRun, interruptible, private_state
from penstock.live.protocol import client, messages, site_key
from penstock.live.protocol.address import Address
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.messages import Challenge, NodeCounters, Proof
from penstock.live.protocol.site_key import RemoteController, SiteKey
from penstock.live.protocol.state_directory import StateDirectory

ANY_ADDRESS = "0.0.0.0"
SILENCE = 10.0
"""Seconds without an acknowledgement after which the other host is gone."""


class HostLauncher:
    """Does what the measurement says, on one connection; a context manager."""

    def __init__(self, measurement: SealedConnection, key: SiteKey, folder: Path) -> None:
        self._sealed = measurement
        self._connection = connection = measurement.connection
        self._address, self._measurement = _addresses(connection)
        self._key = key
        self._state = StateDirectory(folder)
        self._io_nodes: dict[int, subprocess.Popen[bytes]] = {}
        self._before: dict[int, NodeCounters] = {}
        self._poller: ObservationPoller | None = None
        self._watching = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._watching.close()
        for process in self._io_nodes.values():
            process.terminate()
        for process in self._io_nodes.values():
            process.wait()

    def serve(self) -> None:
        """Return when the measurement has ended."""
        with suppress(EOFError, ConnectionError):
            while True:
                text = self._connection.recv_bytes()
                if text in {GO, BROKEN} or len(text) == CLOCK.size:
                    continue  # for ranks that have ended meanwhile
                self._sealed.send(self._answer(self._sealed.decode(text, ToLauncher)))

    def _answer(self, message: HostMessage) -> HostMessage:
        try:
            return self._do(message)
        except (InputError, launcher.LaunchError, runner.NoJobError, OSError) as error:
            return Failed(error=str(error), wrong_input=isinstance(error, InputError))

    def _do(self, message: HostMessage) -> HostMessage:
        match message:
            case CheckRoot(file=file, content=content):
                _check_root(Path(file), content)
            case StartIoNodes():
                return self._start_io_nodes(message)
            case Configure(settings=settings):
                for control in self._controls():
                    with ControlConnection(control) as node:
                        node.ask(settings, messages.Done)
            case Watch(interval=interval):
                self._check_io_nodes()
                self._before = counters(self._controls())
                if interval:
                    poller = ObservationPoller(self._controls(), interval)
                    self._poller = self._watching.enter_context(poller)
            case EndWatch():
                return self._end_watch()
            case RunRanks():
                return self._run(message)
        return Done()

    def _controls(self) -> list[Path]:
        return [self._state.control_socket(number) for number in self._io_nodes]

    def _check_io_nodes(self) -> None:
        for number, process in self._io_nodes.items():
            if process.poll() is not None:
                raise launcher.LaunchError(f"I/O node {number} ended: {self._state.log_tail()}")

    def _controller(self, port: int) -> RemoteController:
        return RemoteController(address=Address(host=self._measurement, port=port), key=self._key)

    def _start_io_nodes(self, message: StartIoNodes) -> IoNodesServe:
        key_file = self._state.folder / "site.key"
        key_file.touch(mode=0o600)
        key_file.write_bytes(self._key.secret)
        controller = self._controller(message.controller_port)
        for number in message.numbers:
            words = [
                *IO_NODE,
                *("--number", str(number), "--with-parent", "--json"),
                *("--socket", str(self._state.data_socket(number))),
                *("--control", str(self._state.control_socket(number))),
                *("--listen", f"{ANY_ADDRESS}:0", "--root", message.root),
                *("--controller", str(controller), "--key-file", str(key_file)),
                *(["--coherent"] if message.coherent else []),
            ]
            with self._state.log.open("ab") as log:
                self._io_nodes[number] = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=os.environ | {"PENSTOCK_DISABLE": "1"},
                    start_new_session=True,
                )
        ports = {
            number: self._port(number, process, message.serves_within)
            for number, process in self._io_nodes.items()
        }
        return IoNodesServe(addresses={n: f"{self._address}:{port}" for n, port in ports.items()})

    def _port(self, number: int, process: "subprocess.Popen[bytes]", within: float) -> int:
        """Return the TCP port of an I/O node once it serves."""
        assert process.stdout is not None
        if not select.select([process.stdout], [], [], within)[0]:
            raise launcher.LaunchError(f"I/O node {number} does not serve after {within:g} s")
        line = process.stdout.readline()
        if not line:
            raise launcher.LaunchError(f"I/O node {number} ended: {self._state.log_tail()}")
        port: int = msgspec.json.decode(line)["tcp_port"]
        return port

    def _end_watch(self) -> Watched:
        self._watching.close()
        self._check_io_nodes()
        poller, self._poller = self._poller, None
        observations = [] if poller is None else poller.observations()
        return Watched(
            before=self._before,
            after=counters(self._controls()),
            observations=dict(zip(self._io_nodes, observations, strict=False)),
        )

    def _run(self, message: RunRanks) -> RanksEnded:
        with tempfile.TemporaryDirectory(prefix="ranks-", dir=self._state.folder) as results:
            plan = msgspec.structs.replace(message.plan, results=results)
            work = HostPlan(plan=plan, ranks=message.ranks, wanted=message.wanted)
            file = Path(results) / "plan.json"
            file.write_bytes(msgspec.json.encode(work))
            descriptor = self._connection.fileno()
            words = [sys.executable, "-P", "-m", host_ranks.__name__]
            words += [str(file), str(descriptor), str(os.getpid())]
            with inheritable(descriptor):
                outcome = runner.run(
                    self._state,
                    words,
                    name=message.name,
                    io_nodes=message.io_nodes,
                    controller=self._controller(message.controller_port),
                    team=message.team,
                )
            notes = HostNotes(clock_offset=0.0, reads_to_connect={})
            with suppress(OSError):  # it ended before
                written = HostNotes.file(results).read_bytes()
                notes = msgspec.json.decode(written, type=HostNotes)
            ended: dict[int, RankResult] = {}
            for number in message.ranks:
                with suppress(OSError, msgspec.DecodeError):
                    own = msgspec.json.decode(plan.result(number).read_bytes(), type=RankResult)
                    ended[number] = by_other_clock(own, notes.clock_offset)
        return RanksEnded(
            status=outcome.status,
            counters=outcome.counters,
            results=ended,
            reads_to_connect=notes.reads_to_connect,
        )


def by_other_clock(result: RankResult, offset: float) -> RankResult:
    """Return a result with the times of a clock that is ahead by `offset`."""

    def moved(one: RankOperation) -> RankOperation:
        return msgspec.structs.replace(one, began=one.began + offset, ended=one.ended + offset)

    return msgspec.structs.replace(result, operations=[moved(one) for one in result.operations])


def _check_root(file: Path, content: str) -> None:
    try:
        seen = file.read_text()
    except OSError as error:
        raise InputError(f"it does not see {file}: {reason(error)}") from error
    if seen != content:
        raise InputError(f"it sees other content in {file} than was written")


@contextmanager
def inheritable(descriptor: int) -> Iterator[None]:
    """Let the processes that the block starts inherit a descriptor."""
    os.set_inheritable(descriptor, True)
    try:
        yield
    finally:
        os.set_inheritable(descriptor, False)


def _addresses(connection: Connection) -> tuple[str, str]:
    """Return the addresses of both ends of a TCP connection, this one first."""
    with socket.socket(fileno=os.dup(connection.fileno())) as own:
        return str(own.getsockname()[0]), str(own.getpeername()[0])


def connect(introduction: Introduction) -> SealedConnection:
    """Connect to the measurement, and prove the key to each other; OSError: it cannot be."""
    hosts = [os.environ.get("SLURM_LAUNCH_NODE_IPADDR", ""), introduction.host]
    error: OSError = ConnectionError("its address is not known")
    for host in filter(None, hosts):
        try:
            own = socket.create_connection((host, introduction.port), client.ANSWER_TIMEOUT)
        except OSError as refused:
            error = refused
            continue
        own.settimeout(None)
        client.set_loss_timeout(own, SILENCE)
        connection = Connection(own.detach())
        return _proven(connection, SiteKey(bytes.fromhex(introduction.key)))
    raise error


def _proven(connection: Connection, key: SiteKey) -> SealedConnection:
    challenge = host_messages.receive(connection, Challenge).nonce
    nonce = site_key.nonce()
    proof = key.proof("client", challenge, nonce)
    host_messages.send(connection, Proof(nonce=nonce, proof=proof))
    answer = host_messages.receive(connection, Proof)
    if not key.proves("controller", challenge, nonce, answer.proof):
        raise PermissionError("the measurement does not have the key")
    host = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    sealed = SealedConnection(connection, key.seals("client", challenge, nonce))
    sealed.send(Hello(host=host))
    return sealed


def main() -> int:
    """Serve the measurement that standard input names, until it ends."""
    # srun was started with it: the site's own deployment has no part in this.
    os.environ.pop("PENSTOCK_DISABLE", None)
    introduction = msgspec.json.decode(sys.stdin.readline(), type=Introduction)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible(), private_state() as folder, connect(introduction) as connection:
            key = SiteKey(bytes.fromhex(introduction.key))
            with HostLauncher(connection, key, folder) as host:
                host.serve()
    except InterruptedRun as interrupt:
        return 128 + interrupt.number
    except (EOFError, OSError) as error:
        sys.stderr.write(f"penstock: {socket.gethostname()}: {reason(error)}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
