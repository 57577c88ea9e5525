"""Who may be whom at the controller: users of its host, other hosts, I/O nodes that register."""

import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from limits import HANG
from live.other_users import AS_ROOT, NOBODY, as_user

from penstock.errors import InputError
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.job_record import JobRecord
from penstock.live.protocol.site_key import RemoteController, SiteKey
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.users import name_of

pytestmark = pytest.mark.security

WAIT = HANG


class Site:
    """A controller that listens to other hosts, with one I/O node here and room for another."""

    def __init__(self, folder: Path) -> None:
        self.state = StateDirectory(folder / "state")
        (folder / "root").mkdir()
        SiteKey.create(folder / "key")
        self.key = SiteKey.read(folder / "key")
        deployment = Deployment(
            state=str(self.state.folder),
            roots=[str(folder / "root")],
            io_nodes=1,
            remote_io_nodes=1,
            listen="127.0.0.1:0",
            key_file=str(folder / "key"),
        )
        launcher.up(deployment)
        self.where = RemoteController.parse(self.state.listen.read_text(), folder / "key")

    def remote(self) -> ControlConnection:
        """Connect as another host does."""
        return ControlConnection(self.where)

    def status(self) -> messages.Status:
        return launcher.ask(self.state, messages.GetStatus(), messages.Status)

    def jobs(self, id: str) -> list[JobRecord]:
        return [job for job in self.status().jobs if job.id == id]

    def until_lost(self, id: str) -> None:
        for _ in range(1000):
            if [job.state for job in self.jobs(id)] == ["lost"]:
                return
        raise AssertionError(self.jobs(id))

    def refusals(self) -> list[str]:
        return [line for line in self.state.log.read_text().splitlines() if "refused: " in line]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="peers", dir="/dev/shm") as path:
        made = Site(Path(path))
        yield made
        launcher.down(made.state)


def begin(controller: ControlConnection, user: str, **more: Any) -> messages.JobAccepted:
    fields: dict[str, Any] = {
        "name": "job",
        "pid": os.getpid(),
        "command": ["job"],
        "user": user,
    } | more
    return controller.ask(messages.BeginJob(**fields), messages.JobAccepted)


@AS_ROOT
def test_a_user_cannot_begin_anothers_job(site: Site) -> None:
    """Else its turns and its mode, and what is known of its family, would be the other's."""
    site.state.folder.parent.chmod(0o711)
    site.state.folder.chmod(0o711)
    site.state.controller.chmod(0o666)

    def ask(message: messages.Message) -> str:
        with ControlConnection(site.state.controller) as controller:
            return type(controller.ask(message, messages.JobAccepted | messages.Done)).__name__  # type: ignore[arg-type]

    def beginning(user: str) -> messages.BeginJob:
        return messages.BeginJob(name="job", pid=1, command=[], user=user)

    assert "cannot begin a job of user 'root'" in as_user(NOBODY, lambda: ask(beginning("root")))
    assert "refused: user nobody cannot begin a job of user 'root'" in site.refusals()[-1]
    assert "cannot" in as_user(NOBODY, lambda: ask(beginning("no-such-user")))
    assert as_user(NOBODY, lambda: ask(beginning("nobody"))) == "JobAccepted"
    for order in (
        messages.Stop(),
        messages.SetMode(mode="off"),
        messages.Remap(job="job", nodes=[]),
    ):
        assert "the deployment's user can" in as_user(NOBODY, partial(ask, order))
    assert site.status().mode == "observe"


def test_a_stripe_of_a_few_bytes_is_refused(site: Site) -> None:
    """A call would ask for each of its bytes: the program was as good as hung."""
    with site.remote() as controller:
        job = begin(controller, "ada").job
        for stripe in (1, 4096, 100_000):
            remap = messages.Remap(job=job, nodes=[0], stripe=stripe)
            with pytest.raises(InputError, match="a stripe has at least 64 KiB"):
                launcher.ask(site.state, remap, messages.Done)
        assert [known.pinned for known in site.jobs(job)] == [None]


def test_only_its_own_user_resumes_a_job(site: Site) -> None:
    with site.remote() as controller:
        job = begin(controller, "ada").job
        controller.send(messages.JobCounters(counters={"write_bytes": 100}))
        with site.remote() as other, pytest.raises(InputError, match="another user's"):
            begin(other, "bob", resumes=job)
        assert [known.user for known in site.jobs(job)] == ["ada"]
    site.until_lost(job)
    with site.remote() as other, pytest.raises(InputError, match="another user's"):
        begin(other, "bob", resumes=job)
    assert f"cannot resume {job}: it is another user's" in site.refusals()[-1]
    before = site.status().direct_bytes
    with site.remote() as controller:
        assert begin(controller, "ada", resumes=job).job == job
        controller.ask(messages.JobExit(counters={"write_bytes": 150}, status=0), messages.Done)
    assert [known.state for known in site.jobs(job)] == ["ended"]
    assert site.status().direct_bytes == before + 50  # what it did before counts once
    with site.remote() as controller:
        assert begin(controller, "ada", resumes=job).job != job  # it has ended


def test_a_job_comes_back_by_a_new_way_before_the_old_one_is_missed(site: Site) -> None:
    """A partition is noticed by one end first: the job is the same, and the old way is closed."""
    with site.remote() as old, site.remote() as new:
        job = begin(old, "ada").job
        assert begin(new, "ada", resumes=job).job == job
        with pytest.raises(ConnectionError):
            old.receive(messages.NodeMap, WAIT)
        assert [known.state for known in site.jobs(job)] == ["running"]
        new.ask(messages.JobExit(counters={}, status=0), messages.Done)


def test_another_host_cannot_rule(site: Site) -> None:
    for order in (
        messages.Stop(),
        messages.SetMode(mode="off"),
        messages.Remap(job="job", nodes=[]),
    ):
        with site.remote() as controller, pytest.raises(InputError, match="controller's host"):
            controller.ask(order, messages.Done)
    assert site.status().mode == "observe"


def node(number: int = 1, **more: Any) -> messages.Node:
    fields: dict[str, Any] = {
        "number": number,
        "id": 77,
        "address": "10.0.0.9",
        "transport": "tcp",
        "port": 7100,
    }
    return messages.Node(**(fields | {"user": "ada"} | more))


def serve(controller: ControlConnection, node: messages.Node) -> None:
    """Register as an I/O node, and take the settings that the controller gives it."""
    controller.ask(messages.RegisterNode(node=node), messages.Done)
    controller.receive(messages.Settings, WAIT)
    controller.send(messages.Done())


def numbers(mapped: messages.NodeMap | messages.JobAccepted) -> list[int]:
    return [known.number for known in mapped.nodes]


def test_jobs_have_io_nodes_that_they_reach_and_that_serve_their_user(site: Site) -> None:
    with (
        site.remote() as ada,
        site.remote() as bob,
        ControlConnection(site.state.controller) as here,
    ):
        begun = begin(ada, "ada")
        assert numbers(begun) == []  # the Unix socket is of another host
        assert begun.token == site.key.token("ada").hex()
        assert numbers(begin(here, "ada")) == [0]
        with site.remote() as serving:
            serve(serving, node())
            assert numbers(ada.receive(messages.NodeMap, WAIT)) == [1]
            assert numbers(here.receive(messages.NodeMap, WAIT)) == [0, 1]
            assert numbers(begin(bob, "bob")) == []
        assert numbers(ada.receive(messages.NodeMap, WAIT)) == []
        assert numbers(here.receive(messages.NodeMap, WAIT)) == [0]
        assert [node.state for node in site.status().io_nodes] == ["serving", "not connected"]


def test_an_io_node_is_itself_whichever_way_it_comes(site: Site) -> None:
    with site.remote() as job, site.remote() as old, site.remote() as new:
        begin(job, "ada")
        serve(old, node())
        assert numbers(job.receive(messages.NodeMap, WAIT)) == [1]
        with site.remote() as other, pytest.raises(InputError, match="already exists"):
            other.ask(messages.RegisterNode(node=node(id=78)), messages.Done)
        serve(new, node())
        assert numbers(job.receive(messages.NodeMap, WAIT)) == []
        assert numbers(job.receive(messages.NodeMap, WAIT)) == [1]
        old.shut_down()
        with pytest.raises(TimeoutError):
            job.receive(messages.NodeMap, 0.3)


@pytest.mark.parametrize("number", [0, 2, -1])
def test_a_number_that_is_not_free_is_refused(site: Site, number: int) -> None:
    with site.remote() as other, pytest.raises(InputError, match="they are 1 to 1"):
        other.ask(messages.RegisterNode(node=node(number)), messages.Done)


def test_an_answer_that_comes_too_late_is_not_taken_for_the_next(site: Site) -> None:
    with site.remote() as serving:
        serve(serving, node())
        with ControlConnection(site.state.controller) as asking:
            answer = asking.ask(messages.GetStatus(), messages.Status)  # nobody answers for 2 s
        assert answer.io_nodes[1].state == "not answering"
        serving.receive(messages.GetCounters, WAIT)
        with ControlConnection(site.state.controller) as asking:
            asking.send(messages.GetStatus())
            serving.receive(messages.GetCounters, WAIT)
            serving.send(measured(1))
            serving.send(measured(2))
            status = asking.receive(messages.Status, WAIT)
        assert status.io_nodes[1].requests == 2


def measured(requests: int) -> messages.NodeCounters:
    fields: dict[str, Any] = {
        f.name: 0 for f in msgspec.structs.fields(messages.NodeCounters) if f.type is int
    }
    return messages.NodeCounters(scheduler="fifo", **(fields | {"requests": requests}))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"listen": "127.0.0.1:0"}, "--listen needs --key-file"),
        ({"listen": "nowhere", "key_file": "key"}, "not an address"),
        ({"listen": "127.0.0.1:0", "key_file": "no-such-key"}, "No such file"),
        ({"remote_io_nodes": 1}, "need --listen"),
        ({"listen": "127.0.0.1:0", "key_file": "key", "emulate": "targets=1"}, "on one host"),
        ({"listen": "127.0.0.1:0", "key_file": "key", "remote_io_nodes": 1024}, "at most 1024"),
    ],
)
def test_a_deployment_that_would_be_open_or_makes_no_sense_is_refused(
    options: dict[str, Any], why: str
) -> None:
    with pytest.raises(InputError, match=why):
        Deployment(state="state", roots=["root"], io_nodes=1, **options).site_key()


def test_a_member_that_joins_later_has_the_io_nodes_of_its_job(site: Site) -> None:
    """The least loaded would be others; without a mate a job has its own."""
    with (
        ControlConnection(site.state.controller) as first,
        ControlConnection(site.state.controller) as second,
        ControlConnection(site.state.controller) as other,
    ):
        me = name_of(os.geteuid())
        began = begin(first, me, team="mpi", io_nodes=0)
        assert began.nodes == []
        assert begin(second, me, team="mpi").nodes == []
        assert [node.number for node in begin(other, me, team="another").nodes] == [0]
        [job] = site.jobs(began.job)
        assert job.io_nodes == []
