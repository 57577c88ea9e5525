"""Real processes under the client library."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from limits import COMPUTING, HANG
from live.ionode.real_node import RealNode, Serve
from live.store.postgres import Postgres, postgres_server

from penstock.live.agent.page_server import PageServer
from penstock.live.protocol.shared_page import SharedPages

PROGRAMS = Path(__file__).parent / "programs"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A managed directory."""
    (tmp_path / "managed").mkdir()
    return tmp_path / "managed"


@pytest.fixture
def pages(root: Path) -> Iterator[SharedPages]:
    with SharedPages([root], longest_wait=5.0) as pages:
        yield pages


@pytest.fixture
def agent(pages: SharedPages, tmp_path: Path) -> Iterator[PageServer]:
    with PageServer(pages, tmp_path / "agent.sock") as agent:
        yield agent


@pytest.fixture
def run(agent: PageServer, root: Path) -> Run:
    """Run a program as a process of the job, in the managed directory."""

    def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=root,
            env=os.environ | agent.environment() | environment,
            capture_output=True,
            text=True,
            timeout=HANG,
            check=True,
        )

    return run


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Compile one of tests/live/programs, once; return its path."""
    folder = tmp_path_factory.mktemp("programs")
    compilers = {
        ".c": ["cc", "-O1", "-pthread"],
        ".cpp": ["c++", "-O1", "-std=c++20"],
        ".f90": ["gfortran", "-O1"],
        ".go": ["go", "build"],
    }

    def compiled(name: str, *options: str) -> str:
        source, target = PROGRAMS / name, folder / name.replace(".", "-")
        if not target.exists():
            command = [*compilers[source.suffix], *options, "-o", str(target), str(source)]
            cache = {"GOCACHE": str(folder / "go"), "GOFLAGS": "-mod=mod"}
            subprocess.run(
                command, check=True, timeout=COMPUTING, cwd=folder, env=os.environ | cache
            )
        return str(target)

    return compiled


# I/O nodes for tests that speak to them in frames.


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A short path, for sockets, in memory."""
    with tempfile.TemporaryDirectory(prefix="io", dir="/dev/shm") as path:
        yield Path(path)


@pytest.fixture(scope="module")
def node(folder: Path) -> Iterator[RealNode]:
    """The node of all tests that leave it as it was."""
    (folder / "shared").mkdir()
    with RealNode(folder / "shared", carries=folder) as node:
        yield node


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a node of the test's own."""
    with tempfile.TemporaryDirectory(prefix="io", dir="/dev/shm") as path:
        nodes: list[RealNode] = []

        def start(*options: str, **more: Any) -> RealNode:
            nodes.append(RealNode(Path(path), len(nodes), *options, **more))
            return nodes[-1]

        yield start
        for node in nodes:
            node.__exit__()


@pytest.fixture
def file(folder: Path) -> Iterator[Path]:
    path = folder / "file"
    path.write_bytes(b"")
    yield path
    path.unlink()


# Databases of the controller's store.


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A server that each test leaves running."""
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.database()
