"""The ways a job may be managed, for tests that run a program in each and compare."""

import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from limits import HANG
from live.ionode.frames import TOKEN
from live.ionode.real_node import RealNode

from penstock.live.agent.page_server import PageServer
from penstock.live.protocol.shared_page import SharedPages

SET_UPS = ("observe", "enforce", "no I/O nodes", "carried over TCP")
CLOSED, OPEN = 0.02, 0.03
"""Seconds that the gate of an enforced job is closed and open, in turn."""


@dataclass(kw_only=True)
class SetUp:
    """A managed directory in memory, beside one that is not managed."""

    root: Path
    plain: Path
    pages: SharedPages
    agent: PageServer
    nodes: list[RealNode] = field(default_factory=list)

    def run(
        self, *command: str, managed: bool = True, check: bool = True, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, as a process of the job or without Penstock."""
        own = self.agent.environment() if managed else {}
        return subprocess.run(
            command,
            cwd=self.root if managed else self.plain,
            env=os.environ | own | environment,
            capture_output=True,
            text=True,
            timeout=HANG,
            check=check,
        )


@contextmanager
def _closing_again_and_again(pages: SharedPages) -> Iterator[None]:
    done = threading.Event()

    def close_and_open() -> None:
        while not done.wait(OPEN):
            pages.close_gate(1.0)
            done.wait(CLOSED)
            pages.open_gate()

    thread = threading.Thread(target=close_and_open)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def set_up(name: str, *options: str) -> Iterator[SetUp]:
    """Start one of SET_UPS; `options` are the I/O node's.

    observe: an I/O node that gives credits. enforce: one that decides about each call, and a gate
    that closes again and again. Carried: an I/O node as on another host.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="up", dir="/dev/shm")))
        root, plain = folder / "managed", folder / "plain"
        root.mkdir()
        plain.mkdir()
        carried = name == "carried over TCP"
        pages = stack.enter_context(SharedPages([root], longest_wait=5.0, token=TOKEN))
        agent = stack.enter_context(PageServer(pages, folder / "agent.sock"))
        made = SetUp(root=root, plain=plain, pages=pages, agent=agent)
        if name == "enforce":
            options = ("--scheduler", "time-order", *options)
        if name != "no I/O nodes":
            node = RealNode(folder, 0, *options, carries=root if carried else None)
            made.nodes.append(stack.enter_context(node))
            pages.assign([node.remote if carried else node.node])
        if name == "enforce":
            stack.enter_context(_closing_again_and_again(pages))
        yield made


Compiled = Callable[..., str]
