"""Jobs get more and fewer I/O nodes as others come and go, and lose no byte of what they write."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from limits import HANG

from penstock.learn.imported import Imported
from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.io_node_record import AllocationStatus
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.store import Family, Knowledge, Store, WriteBehind
from penstock.records import Record, replay

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
            keeper.learn(family, Knowledge(imported=Imported(curve={1: 100e6, 2: 190e6})))

    def up(self, *options: str) -> None:
        up = ["up", "--root", self.folder / "data", "--io-nodes", "2", "--mode", "enforce"]
        up += ["--policy", "fair-share", "--state", self.state.folder, *options]
        subprocess.run([*PENSTOCK, *map(str, up)], check=True, timeout=60)

    def start(
        self, name: str, *options: str, application: str = "writer"
    ) -> "subprocess.Popen[str]":
        run = ["run", "--state", str(self.state.folder), "--name", name]
        run += ["--application", application, *options, "--"]
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

    def down(self) -> None:
        command = [*PENSTOCK, "down", "--state", str(self.state.folder)]
        subprocess.run(command, check=True, timeout=60)

    def status(self) -> messages.Status:
        return launcher.ask(self.state, messages.GetStatus(), messages.Status)

    def explain(self, name: str) -> str:
        command = [*PENSTOCK, "explain", name, "--state", str(self.state.folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        return " ".join(done.stdout.split())

    def places(self) -> dict[str, list[int]]:
        return {job.name: job.io_nodes for job in self.status().jobs if job.state == "running"}

    def counts(self) -> dict[str, int]:
        return {name: len(numbers) for name, numbers in self.places().items()}

    def await_places(self, condition: Callable[[dict[str, list[int]]], bool]) -> None:
        until = time.monotonic() + WAIT
        while not condition(places := self.places()):
            assert time.monotonic() < until, places
            time.sleep(0.02)

    def await_counts(self, **wanted: int) -> None:
        until = time.monotonic() + WAIT
        while (counts := self.counts()) != wanted:
            assert time.monotonic() < until, counts
            time.sleep(0.05)


def launcher_user() -> str:
    return subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()


def none() -> AllocationStatus:
    raise AssertionError("the site has no allocation policy")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    try:
        yield made
    finally:
        for name, job in made.jobs.items():
            Path(made.stop(name)).touch()
            job.communicate(timeout=60)
        made.down()


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


def test_an_allocator_that_can_never_answer_is_refused(site: Site) -> None:
    """static divides by the site's compute nodes, of which nobody said how many there are."""
    for options, refusal in {
        ("--allocation", "static"): "static divides by the site's compute nodes; set site.nodes",
        ("--allocation", "search"): "allocation policy 'search' cannot run live: it simulates",
        ("--set", "placement.policy=search"): "placement policy 'search' cannot run live: it",
        ("--allocation", "oracle"): "cannot run live: it gives jobs more than a site has",
    }.items():
        up = ["up", "--root", site.folder / "data", "--io-nodes", "2", "--state", site.state.folder]
        done = subprocess.run(
            [*PENSTOCK, *map(str, up), *options],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 2, done.stderr
        assert refusal in done.stderr


def test_a_killed_io_node_gives_its_jobs_to_another(site: Site) -> None:
    """One job per I/O node; one dies, the other serves both until it is back."""
    site.up("--allocation", "one")
    jobs = {name: site.start(name) for name in "ab"}
    site.await_places(lambda places: sorted(places.values()) == [[0], [1]])
    nodes = {node.number: node.pid for node in site.status().io_nodes}
    os.kill(int(nodes[1] or 0), signal.SIGKILL)
    # Both are on the one that is left, if only until the other is back.
    site.await_places(lambda _: (site.status().allocation or none()).moves == 2)
    assert sorted(site.places().values()) == [[0], [1]]
    for name, job in jobs.items():
        site.end(name, job)
    text = site.state.log.read_text()
    assert "is moved from I/O nodes [1] to [0]" in text
    assert "is moved from I/O nodes [0] to [1]" in text
    site.down()
    assert replay(Record(*sorted(site.state.records.iterdir()))).first_difference is None


@pytest.mark.parametrize(
    ("options", "expected", "reason"),
    [
        (["--allocation", "best-bandwidth"], {"a": 2, "b": 1}, "new"),
        (
            ["--allocation", "one", "--set", "placement.policy=greedy-clairvoyant"],
            {"a": 1, "b": 1},
            "placed-by-load",
        ),
    ],
    ids=["best-bandwidth", "greedy-clairvoyant"],
)
def test_a_job_of_which_too_little_is_known_does_not_undo_the_decision(
    site: Site, options: list[str], expected: dict[str, int], reason: str
) -> None:
    """`b` is another application, of which nothing is known; `a` has a curve."""
    site.up(*options)
    first = site.start("a")
    site.await_counts(a=expected["a"])
    second = site.start("b", application="another")
    site.await_counts(**expected)
    (allocation,) = [job.allocation for job in site.status().jobs if job.name == "b"]
    assert allocation is not None
    assert allocation.reason == reason
    assert "curve" in allocation.lacks or "best-count" in allocation.lacks
    assert "needs" in site.explain("b")
    site.end("b", second)
    site.end("a", first)


def test_a_curve_beyond_the_site_does_not_undo_the_decision(site: Site) -> None:
    """The site had eight I/O nodes, and what it knows of `large` is of four and eight of them.

    mckp raised an exception because of it, and the fallback policy decided for all jobs.
    """
    curve = {"application": "large", "curve": {"4": 10, "8": 20}}
    curves = site.folder / "curves.json"
    curves.write_text(json.dumps({"applications": [curve]}))
    site.up("--io-nodes", "8", "--curves", str(curves))
    site.down()
    site.up("--allocation", "mckp")
    first = site.start("a")
    site.await_counts(a=2)
    second = site.start("b", application="large")
    site.await_counts(a=2, b=1)
    reasons = {job.name: job.allocation and job.allocation.reason for job in site.status().jobs}
    assert reasons["a"] == "policy"
    assert reasons["b"] in {"new", "unknown"}  # the second once it has run for a while
    assert "is not known, which mckp needs" in site.explain("b")
    site.end("b", second)
    site.end("a", first)


def test_more_jobs_than_io_nodes_share_them(site: Site) -> None:
    """mckp cannot divide two I/O nodes among three: the third job got both, and no word of it."""
    site.up("--allocation", "mckp")
    jobs = {name: site.start(name) for name in "abc"}
    site.await_counts(a=1, b=1, c=1)
    used = sorted(number for numbers in site.places().values() for number in numbers)
    assert used in ([0, 0, 1], [0, 1, 1])
    assert "3 jobs need at least 3 resources and the site has 2" in site.explain("c")
    for name, job in jobs.items():
        site.end(name, job)


def test_observe_shows_what_would_have_been_and_enforce_then_does_it(site: Site) -> None:
    site.up("--mode", "observe", "--allocation", "one")
    job = site.start("a")
    site.await_counts(a=2)
    (record,) = site.status().jobs
    assert (record.io_nodes, record.would_have) == ([0, 1], [0])
    assert "If its mode were enforce, it would have 1 I/O node (0): one gave" in site.explain("a")
    assert (site.status().allocation or none()).moves == 0
    subprocess.run([*PENSTOCK, "mode", "enforce", "--state", str(site.state.folder)], check=True)
    site.await_counts(a=1)
    (record,) = site.status().jobs
    assert record.would_have is None
    assert (site.status().allocation or none()).moves == 1
    site.end("a", job)


def test_explain_says_how_many_which_by_what_from_what_and_since_when(site: Site) -> None:
    site.up()
    job = site.start("a")
    site.await_counts(a=2)
    text = site.explain("a")
    assert "It has had 2 I/O nodes (0, 1) for " in text
    assert "where-known gave the number from its curve (imported at 1, 2)" in text
    assert "greedy-non-clairvoyant chose which" in text
    site.end("a", job)


def test_only_io_nodes_that_are_there_are_given(site: Site, tmp_path: Path) -> None:
    """Of two I/O nodes on other hosts only number 1 has come: mckp gave number 0."""
    key = tmp_path / "key"
    subprocess.run([*PENSTOCK, "key", str(key)], check=True, timeout=60)
    up = ["up", "--root", site.folder / "data", "--io-nodes", "0", "--remote-io-nodes", "2"]
    up += ["--listen", "127.0.0.1:0", "--key-file", key, "--mode", "enforce", "--policy"]
    up += ["fair-share", "--allocation", "mckp", "--state", site.state.folder]
    subprocess.run([*PENSTOCK, *map(str, up)], check=True, timeout=60)
    address = site.state.listen.read_text().strip()
    early = site.start("early")
    site.await_counts(early=0)
    assert "no I/O node that it can reach is up" in site.explain("early")
    ionode = ["ionode", "--number", "1", "--listen", "127.0.0.1:0", "--root", site.folder / "data"]
    ionode += ["--controller", address, "--key-file", key, "--coherent"]
    with subprocess.Popen([*PENSTOCK, *map(str, ionode)], stdout=subprocess.DEVNULL) as node:
        try:
            site.await_places(lambda places: places.get("early") == [1])
            site.end("early", early)
        finally:
            node.terminate()


def test_a_policy_file_is_found_from_where_up_was_said(site: Site) -> None:
    """The controller lives in another directory."""
    (site.folder / "mine.py").write_text(
        "from penstock.policies.sharing.fair_share import FairShare\nclass Mine(FairShare): pass\n"
    )
    up = ["up", "--root", "data", "--io-nodes", "1", "--policy", "mine.py:Mine", "--state", "s"]
    subprocess.run([*PENSTOCK, *up], check=True, timeout=60, cwd=site.folder)
    status = launcher.ask(site.state, messages.GetStatus(), messages.Status)
    assert status.policy == f"{site.folder}/mine.py:Mine"
