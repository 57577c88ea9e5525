"""A site of seven hosts in network namespaces, and what is cut off and comes back."""

import itertools
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosts.job import BLOCK
from hosts.site import COMPUTE, LEASE, PORT, Site, can_make_hosts, site_of
from limits import HANG, within

pytestmark = [
    pytest.mark.skipif(not can_make_hosts(), reason="needs root for network namespaces"),
    pytest.mark.timed,
]
PHASES, BLOCKS = 2, 6


@pytest.fixture(scope="module")
def whole_site() -> Iterator[Site]:
    with (
        tempfile.TemporaryDirectory(prefix="hosts", dir="/dev/shm") as path,
        site_of(Path(path)) as site,
    ):
        yield site


@pytest.fixture
def site(whole_site: Site) -> Iterator[Site]:
    yield whole_site
    whole_site.mend()


def test_jobs_of_four_hosts_take_turns_and_lose_no_byte(site: Site) -> None:
    jobs = [site.start(host, str(PHASES), str(BLOCKS)) for host in COMPUTE]
    reports = [job.ended() for job in jobs]
    for job in jobs:
        site.check_file(job, PHASES * BLOCKS)
    assert [t["forwarded_bytes"] for t in reports] == [PHASES * BLOCKS * BLOCK] * 4
    assert [(t["direct_bytes"], t["fail_opens"]) for t in reports] == [(0, 0)] * 4
    phases = sorted(interval for job in jobs for interval in job.phases())
    assert len(phases) == 4 * PHASES
    for (_, ended), (began, _) in itertools.pairwise(phases):
        assert ended <= began, "two hosts transferred at once"
    status = site.status()
    addresses = {job["name"]: job["host"] for job in status["jobs"]}
    assert addresses == {host: site.hosts[host].address for host in COMPUTE}
    written = [node["write_bytes"] for node in status["io_nodes"]]
    assert written == [2 * PHASES * BLOCKS * BLOCK] * 2  # the stripes of each file, half and half


def test_a_host_that_is_cut_off_with_the_turn_holds_nobody_up(site: Site) -> None:
    """Others go on within lease + 2 s; its own writes wait for the I/O nodes, and then end well.

    What it had sent to an I/O node waits; what it had not goes direct, and is counted.
    """
    holder = site.start("h0", "2", str(BLOCKS), "hold")
    holder.until("holds")
    others = [site.start(host, "1", str(BLOCKS)) for host in COMPUTE[1:]]
    site.until(lambda status: list(site.doing(status).values()).count("waiting") == 3)
    id_before = [job["id"] for job in site.status()["jobs"] if job["name"] == "h0"][-1]
    cut = time.monotonic()
    site.hosts["h0"].cut_off()
    holder.go_on()
    went_on = min(job.until("began") for job in others) - cut
    for job in others:
        job.ended()
    print(f"cut off with the turn: others went on after {went_on:.2f} s")
    assert went_on <= within(LEASE + 2.0)
    assert holder.process.poll() is None, "it should wait as on a file system that hangs"
    assert ("ended", 0) not in holder.times
    site.hosts["h0"].bring_back()
    holder.until("holds", 1)
    site.until(lambda status: site.doing(status) == {"h0": "transferring"})
    holder.go_on()
    report = holder.ended()
    assert report["forwarded_bytes"] + report["direct_bytes"] == 2 * BLOCKS * BLOCK
    assert report["forwarded_bytes"] >= 2 * BLOCK  # before it was cut off, and what waited
    assert report["fail_opens"] * BLOCK >= report["direct_bytes"]
    site.check_file(holder, 2 * BLOCKS)
    for job in others:
        site.check_file(job, BLOCKS)
    entries = [job for job in site.status()["jobs"] if job["id"] == id_before]
    assert [(job["state"], job["status"]) for job in entries] == [("ended", 0)]


def test_an_io_node_that_is_cut_off_is_left_out_until_it_is_back(site: Site) -> None:
    """A write that it was sent waits for it; jobs that begin meanwhile do without it."""
    holder = site.start("h0", "1", str(BLOCKS), "hold")
    holder.until("holds")
    before = [node["id"] for node in site.status()["io_nodes"]]
    site.hosts["io1"].cut_off()
    holder.go_on()  # every other block is the node's, and on its way
    site.await_nodes("serving", "not connected")
    meanwhile = site.start("h1", "1", str(BLOCKS))
    site.until(lambda status: site.doing(status) == {"h0": "transferring", "h1": "waiting"})
    site.hosts["io1"].bring_back()
    status = site.await_nodes("serving", "serving")
    assert [node["id"] for node in status["io_nodes"]] == before
    reports = [job.ended() for job in (holder, meanwhile)]
    assert [(t["forwarded_bytes"], t["direct_bytes"]) for t in reports] == [(BLOCKS * BLOCK, 0)] * 2
    after = site.start("h2", "1", str(BLOCKS))
    after.ended()
    for job in (holder, meanwhile, after):
        site.check_file(job, BLOCKS)
    assert site.status()["io_nodes"][1]["write_bytes"] > status["io_nodes"][1]["write_bytes"]


def test_an_io_node_that_dies_while_it_is_cut_off_is_gone_once_its_host_is_back(
    site: Site,
) -> None:
    """Nobody heard of its death: until its host resets the connection, a write must wait for it."""
    holder = site.start("h0", "1", str(BLOCKS), "hold")
    holder.until("holds")
    before = site.status()["io_nodes"][1]["id"]
    site.hosts["io1"].cut_off()
    holder.go_on()
    site.await_nodes("serving", "not connected")
    site.kill_node(1)
    assert ("ended", 0) not in holder.times
    assert holder.process.poll() is None
    site.hosts["io1"].bring_back()
    report = holder.ended()
    assert report["forwarded_bytes"] + report["direct_bytes"] == BLOCKS * BLOCK
    site.check_file(holder, BLOCKS)
    site.start_node(1)
    assert site.await_nodes("serving", "serving")["io_nodes"][1]["id"] != before


def test_without_the_controllers_host_jobs_go_on_and_come_back_to_it(site: Site) -> None:
    holder = site.start("h0", "2", str(BLOCKS), "hold")
    holder.until("holds")
    waits = site.start("h1", "1", str(BLOCKS))
    status = site.until(lambda status: site.doing(status).get("h1") == "waiting")
    ids = {job["name"]: job["id"] for job in status["jobs"] if job["state"] == "running"}
    cut = time.monotonic()
    site.controller.cut_off()
    went_on = waits.until("began") - cut  # its gate opens by itself
    print(f"controller cut off: who waited went on after {went_on:.2f} s")
    assert went_on <= within(LEASE + 2.0)
    report = waits.ended()
    assert report["fail_opens"] == 1
    assert report["forwarded_bytes"] == BLOCKS * BLOCK  # I/O nodes need no controller
    plain = site.start("h2", "1", str(BLOCKS))
    plain.until("done")
    assert plain.process.wait(timeout=HANG) == 0
    assert "running the command unmanaged" in plain.process.stderr.read()  # type: ignore[union-attr]
    site.controller.bring_back()
    site.until(lambda status: site.doing(status).get("h0") is not None)
    site.await_nodes("serving", "serving")
    for number in range(2):
        holder.until("holds", number)
        holder.go_on()
    holder.ended()
    for job, n in ((holder, 2 * BLOCKS), (waits, BLOCKS)):
        site.check_file(job, n)
    last = [job for job in site.status()["jobs"] if job["name"] == "h0"][-1]
    assert (last["id"], last["state"]) == (ids["h0"], "ended")


@pytest.mark.security
def test_who_has_another_key_is_refused_and_logged(site: Site) -> None:
    host, wrong = site.hosts["h3"], site.folder / "wrong"
    assert site.penstock(host, "key", str(wrong)).returncode == 0
    where = ("--controller", f"{site.controller.address}:{PORT}", "--key-file", str(wrong))
    run = ("run", *where, "--state", str(site.folder / "h3"), "--require", "--", "true")
    result = site.penstock(host, *run)
    assert result.returncode == 2
    assert "the site key is not proven" in result.stderr
    assert (
        f"refused: host {host.address}: its proof of the site key is wrong" in site.log.read_text()
    )
    job = site.start("h3", "1", str(BLOCKS))
    assert job.ended()["forwarded_bytes"] == BLOCKS * BLOCK
