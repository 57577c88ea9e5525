"""Jobs get more and fewer I/O nodes as others come and go, and lose no byte of what they write."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from limits import HANG

from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.store import Family, Knowledge, Store, WriteBehind

PENSTOCK = [sys.executable, "-m", "penstock.cli"]
WAIT = HANG
WRITER = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR | os.O_TRUNC)
k = 0
while not os.path.exists(sys.argv[2]):
    os.pwrite(fd, bytes([k % 251]) * 100_000, 100_000 * k)
    k += 1
    time.sleep(0.002)
os.close(fd)
print(k)
"""


class Site:
    """A deployment of two I/O nodes whose user's program is known to gain from both."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state = folder, StateDirectory(folder / "s")
        self.jobs: dict[str, subprocess.Popen[str]] = {}
        (folder / "data").mkdir()
        self.state.create()
        with WriteBehind(Store(f"sqlite:///{self.state.store}")) as keeper:
            user = launcher_user()
            family = Family(user=user, executable="writer", nodes=1)
            keeper.learn(family, Knowledge(curve={1: 100e6, 2: 190e6}))

    def up(self, *options: str) -> None:
        up = ["up", "--root", self.folder / "data", "--io-nodes", "2", "--mode", "enforce"]
        up += ["--policy", "fair-share", "--state", self.state.folder, *options]
        subprocess.run([*PENSTOCK, *map(str, up)], check=True, timeout=60)

    def start(self, name: str, *options: str) -> "subprocess.Popen[str]":
        run = ["run", "--state", str(self.state.folder), "--name", name]
        run += ["--application", "writer", *options, "--"]
        writer = [sys.executable, "-c", WRITER, str(self.folder / "data" / name), self.stop(name)]
        job = subprocess.Popen([*PENSTOCK, *run, *writer], stdout=subprocess.PIPE, text=True)
        self.jobs[name] = job
        return job

    def stop(self, name: str) -> str:
        return str(self.folder / f"stop-{name}")

    def end(self, name: str, job: "subprocess.Popen[str]") -> None:
        """Let a job end; all that it wrote is there."""
        Path(self.stop(name)).touch()
        del self.jobs[name]
        output, _ = job.communicate(timeout=60)
        assert job.returncode == 0
        written = (self.folder / "data" / name).read_bytes()
        assert len(written) == 100_000 * int(output)
        for k in range(int(output)):
            assert written[100_000 * k : 100_000 * (k + 1)] == bytes([k % 251]) * 100_000

    def counts(self) -> dict[str, int]:
        status = launcher.ask(self.state, messages.GetStatus(), messages.Status)
        return {job.name: len(job.io_nodes) for job in status.jobs if job.state == "running"}

    def await_counts(self, **wanted: int) -> None:
        until = time.monotonic() + WAIT
        while (counts := self.counts()) != wanted:
            assert time.monotonic() < until, counts
            time.sleep(0.05)


def launcher_user() -> str:
    return subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    try:
        yield made
    finally:
        for name, job in made.jobs.items():
            Path(made.stop(name)).touch()
            job.communicate(timeout=60)
        down = [*PENSTOCK, "down", "--state", str(made.state.folder)]
        subprocess.run(down, check=True, timeout=60)


def test_a_running_job_gives_up_an_io_node_and_gets_it_back(site: Site) -> None:
    """mckp: alone it has both; with another of its kind one each is the best sum."""
    site.up()
    first = site.start("a")
    site.await_counts(a=2)
    second = site.start("b")
    site.await_counts(a=1, b=1)
    time.sleep(0.3)  # data flows through the new maps
    site.end("b", second)
    site.await_counts(a=2)
    time.sleep(0.3)
    site.end("a", first)
    status = launcher.ask(site.state, messages.GetStatus(), messages.Status)
    forwarded = {job.name: job.forwarded_bytes for job in status.jobs}
    sizes = {name: (site.folder / "data" / name).stat().st_size for name in "ab"}
    assert forwarded == sizes


@pytest.mark.parametrize("how", ["static", "observe", "pinned"])
def test_who_shall_not_be_moved_stays(site: Site, how: str) -> None:
    """STATIC (paper forwarding, 5.6.3) never moves a running job; observing changes nothing."""
    static = ["--allocation", "static", "--set", "site.nodes=4"]
    options = {"static": static, "observe": ["--mode", "observe"]}
    site.up(*options.get(how, []))
    first = site.start("a", *(["--io-nodes", "2"] if how == "pinned" else []))
    until = time.monotonic() + WAIT
    while not (before := site.counts()):
        assert time.monotonic() < until
    second = site.start("b")
    while len(site.counts()) < 2:
        assert time.monotonic() < until
    assert site.counts()["a"] == before["a"]
    site.end("b", second)
    site.end("a", first)


def test_an_allocator_that_cannot_answer_breaks_no_job(site: Site) -> None:
    """static divides by the site's compute nodes, of which nobody said how many there are."""
    site.up("--allocation", "static")
    job = site.start("a")
    site.await_counts(a=2)
    site.end("a", job)


def test_a_policy_file_is_found_from_where_up_was_said(site: Site) -> None:
    """The controller lives in another directory."""
    (site.folder / "mine.py").write_text(
        "from penstock.policies.sharing.fair_share import FairShare\nclass Mine(FairShare): pass\n"
    )
    up = ["up", "--root", "data", "--io-nodes", "1", "--policy", "mine.py:Mine", "--state", "s"]
    subprocess.run([*PENSTOCK, *up], check=True, timeout=60, cwd=site.folder)
    status = launcher.ask(site.state, messages.GetStatus(), messages.Status)
    assert status.policy == f"{site.folder}/mine.py:Mine"
