"""The I/O nodes of a deployment: starts them, restarts them when they die, queries and drains them.

I/O nodes on other hosts connect by themselves, and are queried on that connection.
"""

import asyncio
import fcntl
import logging
import os
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from penstock.errors import InputError
from penstock.live.controller.io_node_link import IoNodeLink, Lines
from penstock.live.deployment.spec import ANSWER_TIMEOUT, DRAIN_TIMEOUT, Deployment
from penstock.live.protocol import client
from penstock.live.protocol import messages as wire
from penstock.live.protocol.state_directory import StateDirectory, is_stopped, write_holder
from penstock.live.protocol.users import name_of

RESTARTS, RESTARTS_WITHIN = 5, 60.0
"""An I/O node that died more often than this, within this many seconds, stays down."""
FIRST_DELAY, LONGEST_DELAY = 0.1, 5.0
RELINK_DELAY = 0.2
"""Seconds from the break of a connection to an I/O node that lives to the next try."""
LOOPBACK = "127.0.0.1"

log = logging.getLogger("penstock.controller")


class Announcement(msgspec.Struct, frozen=True):
    """What an I/O node prints once it serves."""

    tcp_port: int


class StartError(Exception):
    """An I/O node does not serve; the message says why."""


class IoNode:
    """One I/O node, over restarts of its process."""

    def __init__(self, number: int, *, remote: bool = False) -> None:
        self.number = number
        self.remote = remote  # on another host: it connects by itself
        self.link: IoNodeLink | None = None
        self.node: wire.Node | None = None  # while it serves
        self.process: asyncio.subprocess.Process | None = None
        self.deaths = 0
        self.given_up = False
        self.answered = 0.0  # the time of its last answer, monotonic

    @property
    def absence(self) -> str:
        """The state of an I/O node that does not serve."""
        if self.remote:
            return "not connected"
        return "down" if self.given_up else "starting"

    def silence(self, now: float, why: str) -> tuple[float, str]:
        """Return for how long it has not answered, and why, as far as this host can see."""
        # It may have gone while it was asked.
        if self.node is not None and not self.remote and is_stopped(self.node.pid):
            why = f"its process is stopped; 'kill -CONT {self.node.pid}' lets it go on"
        return now - self.answered, why


class IoNodes:
    """All I/O nodes; `up` and `down` are called when one begins or stops serving."""

    def __init__(
        self,
        deployment: Deployment,
        environment: Callable[[int], dict[str, str]],
        *,
        up: Callable[[wire.Node], None],
        down: Callable[[int], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.state = StateDirectory(Path(deployment.state))
        self.nodes = [
            IoNode(k, remote=k >= deployment.io_nodes) for k in range(deployment.all_io_nodes)
        ]
        self._deployment = deployment
        self._environment = environment
        self._up, self._down = up, down
        self.clock = clock
        self._supervisors: list[asyncio.Task[None]] = []
        self._relinking: set[asyncio.Task[None]] = set()
        self._ending = False

    async def start(self) -> None:
        """Return when all serve; StartError: one does not, and all are ended."""
        tasks = [asyncio.create_task(self._start(io_node)) for io_node in self._own()]
        try:
            await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for io_node in self._own():
                await _kill(io_node.process)
            raise
        self._supervisors = [
            asyncio.create_task(self._supervise(io_node)) for io_node in self._own()
        ]

    async def ask(self, number: int, message: wire.Message, answer: Any) -> Any:
        """Return an I/O node's answer; OSError (also TimeoutError): it does not answer."""
        io_node = self.nodes[number]
        if io_node.link is not None:
            result = await io_node.link.ask(message, answer)
        elif not io_node.remote:
            result = await self._ask(number, message, answer, ANSWER_TIMEOUT)
        else:
            raise ConnectionError(f"I/O node {number} is not connected")
        io_node.answered = self.clock()
        return result

    async def ask_each(
        self,
        messages: Mapping[int, wire.Message],
        answer: Any,
        receive: Callable[[int, Any], None],
        within: float = ANSWER_TIMEOUT,
    ) -> None:
        """Query several at once; `receive` is called with each answer, or an OSError."""
        waiting: set[asyncio.Future[bytes]] = set()
        lines: dict[wire.Message, bytes] = {}
        # All requests are sent before the first answer is handled.
        for number, message in messages.items():
            link = self.nodes[number].link
            try:
                if link is None:
                    raise ConnectionError(f"I/O node {number} is not connected")
                if message not in lines:
                    lines[message] = client.encode_line(message)
                text = link.send(lines[message])
            except OSError as error:
                receive(number, error)
                continue
            text.add_done_callback(partial(self._answered, number, answer, receive))
            waiting.add(text)
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=within)
            for text in late:
                text.cancel()

    def _answered(
        self,
        number: int,
        answer: Any,
        receive: Callable[[int, Any], None],
        text: "asyncio.Future[bytes]",
    ) -> None:
        if text.cancelled():
            receive(number, TimeoutError("no answer came in time"))
            return
        try:
            result = client.decode_line(text.result(), wire.Failure | answer)
        except OSError as error:
            receive(number, error)
            return
        self.nodes[number].answered = self.clock()
        receive(number, result)

    async def keep_link(self, io_node: IoNode) -> None:
        """Keep a connection to an I/O node of this host; it is made again when it breaks."""
        node, loop = io_node.node, asyncio.get_running_loop()
        if node is None or io_node.link is not None or self._ending:
            return

        def receive(text: bytes) -> None:
            link.receive(text)

        def lost() -> None:
            link.close()
            if io_node.link is link:
                io_node.link = None
                try_again()

        def try_again() -> None:
            if io_node.node is node and not self._ending:
                loop.call_later(RELINK_DELAY, relink)

        def relink() -> None:
            task = asyncio.create_task(self.keep_link(io_node))
            self._relinking.add(task)
            task.add_done_callback(self._relinking.discard)

        try:
            transport, _ = await loop.create_unix_connection(
                lambda: Lines(receive, lost), str(self.state.control_socket(io_node.number))
            )
        except OSError as error:
            log.warning("I/O node %d: %s", io_node.number, error)
            try_again()
            return
        io_node.link = link = IoNodeLink(node, transport)

    def join(self, link: IoNodeLink) -> None:
        """Add an I/O node of another host; InputError: its number is not free."""
        number, first = link.node.number, self._deployment.io_nodes
        if not first <= number < len(self.nodes):
            numbers = f"{first} to {len(self.nodes) - 1}"
            raise InputError(
                f"there is no I/O node {number} on another host; "
                + (
                    f"they are {numbers}"
                    if self._deployment.remote_io_nodes
                    else "none is expected"
                )
            )
        before = self.nodes[number].link
        if before is not None and before.node.id != link.node.id:
            raise InputError(f"I/O node {number} already exists; give another --number")
        self.leave(before)
        self.nodes[number].link = link

    async def welcome(self, link: IoNodeLink) -> None:
        """Configure an I/O node that joined, and report it as up."""
        number = link.node.number
        try:
            await self._configure(number)
        except StartError as error:
            log.error("%s", error)
            return
        io_node = self.nodes[number]
        if io_node.link is link:
            io_node.node, io_node.answered = link.node, self.clock()
            log.info("I/O node %d serves at %s", number, link.node.address)
            self._up(link.node)

    def leave(self, link: IoNodeLink | None) -> None:
        """Remove an I/O node of another host: it, or its connection, is gone."""
        if link is None:
            return
        link.close()
        io_node = self.nodes[link.node.number]
        if io_node.link is link:
            io_node.link = io_node.node = None
            log.warning("I/O node %d is not connected", io_node.number)
            self._down(io_node.number)

    def _own(self) -> list[IoNode]:
        return [io_node for io_node in self.nodes if not io_node.remote]

    async def stop(self) -> None:
        """Let all finish their requests, and end them."""
        self._ending = True
        tasks = [*self._supervisors, *self._relinking]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*map(self._drain, self._own()))
        for io_node in self._own():
            if io_node.link is not None:
                io_node.link.close()

    async def _start(self, io_node: IoNode) -> None:
        number, identity = io_node.number, secrets.randbits(63) | 1
        socket, control = self.state.data_socket(number), self.state.control_socket(number)
        socket.unlink(missing_ok=True)
        control.unlink(missing_ok=True)
        lock = _locked(self.state, number)
        try:
            with self.state.log.open("ab") as errors:
                io_node.process = process = await asyncio.create_subprocess_exec(
                    *self._deployment.io_node,
                    *("--socket", str(socket), "--control", str(control)),
                    *("--number", str(number), "--id", str(identity), "--json"),
                    *self._carrying(),
                    *(["--with-parent"] if self._deployment.attached else []),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=errors,
                    env=self._environment(number),
                    pass_fds=[lock],
                    start_new_session=True,
                )
            write_holder(lock, process.pid)
        except OSError as error:
            raise StartError(f"I/O node {number} cannot be started: {error}") from error
        finally:
            os.close(lock)
        port = await self._serving(number, process)
        io_node.answered = self.clock()
        await self._configure(number)
        node = wire.Node(number=number, id=identity, address=str(socket), pid=process.pid)
        if self._deployment.emulate is not None:
            user = name_of(os.geteuid())
            node = msgspec.structs.replace(
                node, transport="tcp", address=LOOPBACK, port=port, user=user
            )
        io_node.node = node
        log.info("I/O node %d serves, process %d", number, process.pid)
        await self.keep_link(io_node)
        self._up(io_node.node)

    def _carrying(self) -> list[str]:
        """Return the options of emulated I/O nodes: they stand for other hosts, and carry data."""
        if self._deployment.emulate is None:
            return []
        roots = [part for root in self._deployment.roots for part in ("--root", root)]
        return ["--listen", f"{LOOPBACK}:0", "--token-file", str(self.state.carry_token), *roots]

    async def _serving(self, number: int, process: asyncio.subprocess.Process) -> int:
        """Wait until it serves; return its TCP port, or 0."""
        assert process.stdout is not None
        seconds = self._deployment.serves_within
        try:
            async with asyncio.timeout(seconds):
                line = await process.stdout.readline()
        except TimeoutError:
            await _kill(process)
            raise StartError(f"I/O node {number} does not serve after {seconds:g} s") from None
        if not line:
            await _kill(process)
            raise StartError(f"I/O node {number} ended with status {process.returncode}")
        return int(msgspec.json.decode(line, type=Announcement).tcp_port)

    async def _configure(self, number: int) -> None:
        if self._deployment.settings == wire.Settings():
            return
        try:
            answer = await self.ask(number, self._deployment.settings, wire.Done)
        except OSError as error:
            raise StartError(f"I/O node {number} cannot be configured: {error}") from error
        if isinstance(answer, wire.Failure):
            raise StartError(f"I/O node {number}: {answer.error}")

    async def _supervise(self, io_node: IoNode) -> None:
        """Restart the I/O node whenever it dies, unless that happens too often."""
        died: deque[float] = deque(maxlen=RESTARTS)
        delay = FIRST_DELAY
        while True:
            assert io_node.process is not None
            status = await io_node.process.wait()
            io_node.node = None
            io_node.deaths += 1
            self._down(io_node.number)
            log.warning("I/O node %d died with status %d", io_node.number, status)
            now = self.clock()
            if len(died) == RESTARTS and now - died[0] < RESTARTS_WITHIN:
                io_node.given_up = True
                log.error("I/O node %d died too often and stays down", io_node.number)
                return
            again = died and now - died[-1] < RESTARTS_WITHIN
            delay = min(2 * delay, LONGEST_DELAY) if again else FIRST_DELAY
            died.append(now)
            await asyncio.sleep(delay)
            try:
                await self._start(io_node)
            except StartError as error:
                log.error("%s", error)

    async def _drain(self, io_node: IoNode) -> None:
        process = io_node.process
        if process is None or process.returncode is not None:
            return
        with suppress(OSError):
            drain = wire.Drain(seconds=DRAIN_TIMEOUT)
            await self._ask(io_node.number, drain, wire.Done, DRAIN_TIMEOUT + ANSWER_TIMEOUT)
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                await process.wait()
        except TimeoutError:
            log.warning("I/O node %d did not end when drained", io_node.number)
            await _kill(process)

    async def _ask(self, number: int, message: wire.Message, kind: Any, seconds: float) -> Any:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_unix_connection(
                self.state.control_socket(number), limit=client.MAX_LINE_BYTES
            )
            try:
                writer.write(client.encode_line(message))
                try:
                    text = await reader.readuntil(b"\n")
                except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
                    raise ConnectionError(f"I/O node {number} does not answer") from error
                return client.decode_line(text, wire.Failure | kind)
            finally:
                writer.close()


def _locked(state: StateDirectory, number: int) -> int:
    """Return a lock that the I/O node inherits and so holds exactly as long as it lives."""
    lock = os.open(state.node_lock(number), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise StartError(f"I/O node {number} of an earlier run still runs") from error
    return lock


async def _kill(process: asyncio.subprocess.Process | None) -> None:
    if process is None or process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
