"""Who knows one user's key is that user at the controller, and nobody else."""

import os
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from limits import HANG
from live.other_users import AS_ROOT, NOBODY, as_user, command_as
from security.test_between_hosts import PENSTOCK, Site

from penstock.errors import InputError
from penstock.live.agent.user_keys import key_of_host, remote_controller
from penstock.live.deployment import launcher
from penstock.live.protocol import client, messages
from penstock.live.protocol.address import Address
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.hook_messages import AgentDirectory, UserKey
from penstock.live.protocol.site_key import Key, RemoteController, SiteKey

pytestmark = pytest.mark.security


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="keys", dir="/dev/shm") as path:
        Path(path).chmod(0o755)
        made = Site(Path(path))
        (made.folder / "root").chmod(0o1777)
        yield made
        launcher.down(made.state)


def connect(site: Site, key: Key) -> ControlConnection:
    host, port = site.controller
    return ControlConnection(RemoteController(address=Address(host=host, port=port), key=key))


def begin(user: str, **more: str) -> messages.BeginJob:
    return messages.BeginJob(name="job", pid=1, command=["job"], user=user, **more)  # type: ignore[arg-type]


@pytest.fixture
def alice(site: Site) -> Iterator[ControlConnection]:
    with connect(site, SiteKey.read(site.key).of_user("alice")) as made:
        yield made


def test_a_user_begins_own_jobs(site: Site, alice: ControlConnection) -> None:
    accepted = alice.ask(begin("alice"), messages.JobAccepted)
    assert accepted.token == SiteKey.read(site.key).token("alice").hex()
    alice.ask(messages.JobExit(counters={}, status=0), messages.Done)


def test_a_user_is_nobody_else(site: Site, alice: ControlConnection) -> None:
    with connect(site, SiteKey.read(site.key)) as host:
        job = host.ask(begin("bob"), messages.JobAccepted).job
        with pytest.raises(
            InputError, match=r"user alice of host .* cannot begin a job of user 'bob'"
        ):
            alice.ask(begin("bob"), messages.JobAccepted)
        with pytest.raises(InputError, match="another user's"):
            alice.ask(begin("alice", resumes=job), messages.JobAccepted)
        exit_ = messages.UnreportedExit(
            job=job, begin=begin("bob"), began=0.0, ended=1.0, counters={}, status=0
        )
        with pytest.raises(InputError, match="cannot report the end of a job of user 'bob'"):
            alice.ask(exit_, messages.Done)
        with pytest.raises(InputError, match="another user's"):
            alice.ask(
                messages.UnreportedExit(
                    job=job, begin=begin("alice"), began=0.0, ended=1.0, counters={}, status=0
                ),
                messages.Done,
            )
        assert "bob" not in alice.ask(messages.GetStatus(), messages.Status).modes
        seen = alice.ask(messages.GetStatus(), messages.Status).jobs
        assert {each.user for each in seen} <= {"alice"}
        assert [each.state for each in site.status().jobs if each.id == job] == ["running"]
        with pytest.raises(InputError, match="cannot forget applications of user 'bob'"):
            alice.ask(messages.ForgetApplications(user="bob"), messages.Forgotten)


def test_a_user_is_no_io_node_and_rules_nothing(alice: ControlConnection) -> None:
    node = messages.Node(number=0, id=7, address="10.0.0.9", transport="tcp", port=1, user="alice")
    with pytest.raises(InputError, match="cannot be an I/O node"):
        alice.ask(messages.RegisterNode(node=node), messages.Done)
    for order in (messages.Stop(), messages.SetMode(mode="off")):
        with pytest.raises(InputError, match="on the controller's host"):
            alice.ask(order, messages.Done)


@pytest.mark.parametrize("name", ["bob", "", "root", "alice "])
def test_a_key_proves_its_own_user(site: Site, name: str) -> None:
    """An empty name is a host's: it would speak for all users."""
    key = SiteKey.read(site.key).of_user("alice")
    with pytest.raises(PermissionError, match="not proven"):
        connect(site, Key(key.secret, name))


def test_a_users_key_is_no_site_key(site: Site, tmp_path: Path) -> None:
    """Neither its file nor its secret; and what it derives is no token of an I/O node."""
    key = SiteKey.read(site.key).of_user("alice")
    file = tmp_path / "alice.key"
    done = subprocess.run(
        [*PENSTOCK, "key", str(file), "--of-user", "alice", "--key-file", str(site.key)],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert file.stat().st_mode & 0o777 == 0o600
    assert Key.read(file) == key
    with pytest.raises(InputError, match="is the key of user alice, not of the site"):
        SiteKey.read(file)
    again = SiteKey(key.secret)
    assert again.token("alice") != SiteKey.read(site.key).token("alice")
    assert again.of_user("bob") != SiteKey.read(site.key).of_user("bob")
    assert key.secret.hex() not in repr(key)


# Given out by the agent of root.


@pytest.fixture
def agent(site: Site) -> Iterator[AgentDirectory]:
    """The agent of a host, which has the site key."""
    folder = AgentDirectory(site.folder / "agent")
    where = f"{site.controller[0]}:{site.controller[1]}"
    with subprocess.Popen(
        [
            *(*PENSTOCK, "agent", "--controller", where, "--key-file", str(site.key)),
            *("--json", "--run", str(folder.path)),
        ],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "{\n"
        yield folder
        process.terminate()


@AS_ROOT
def test_the_agent_gives_a_user_its_own_key_alone(site: Site, agent: AgentDirectory) -> None:
    for uid, name in ((NOBODY, "nobody"), (1, "daemon"), (54321, "54321")):
        expected = SiteKey.read(site.key).of_user(name)
        given = as_user(uid, lambda: f"{key_of_host(agent).secret.hex()}")
        assert given == expected.secret.hex()
    refused = as_user(NOBODY, lambda: ControlConnection(agent.control))
    assert "PermissionError" in refused


@AS_ROOT
def test_a_user_runs_jobs_of_its_own_with_the_sites_options(
    site: Site, agent: AgentDirectory
) -> None:
    """The site key is root's: whoever cannot read it is asked for by the agent."""
    home = site.folder / "home"
    home.mkdir(mode=0o700)
    os.chown(home, NOBODY, -1)
    where = ("--controller", f"{site.controller[0]}:{site.controller[1]}")
    for key_file in (("--key-file", str(site.key)), ()):
        done = subprocess.run(
            command_as("nobody", *PENSTOCK, "run", *where, *key_file, "--", "echo", "ran"),
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
            cwd="/",
            env=os.environ | {"XDG_RUNTIME_DIR": str(home), "PENSTOCK_RUN": str(agent.path)},
        )
        assert (done.stdout, done.stderr, done.returncode) == ("ran\n", "", 0)
        job = site.status().jobs[-1]
        assert (job.user, job.state, job.host) == ("nobody", "ended", "127.0.0.1")


@AS_ROOT
def test_keys_are_taken_from_root_alone() -> None:
    """Another user's agent would lend its own key, and be told what jobs do."""
    with tempfile.TemporaryDirectory(prefix="agent", dir="/dev/shm") as path:
        folder = AgentDirectory(Path(path))
        folder.path.chmod(0o777)

        def lends() -> str:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(folder.users))
                listener.listen()
                folder.users.chmod(0o666)
                connection, _ = listener.accept()
                with connection:
                    key = UserKey(user="nobody", secret="00" * 32)
                    connection.sendall(client.encode_line(key))
            return ""

        thread = threading.Thread(target=lambda: as_user(NOBODY, lends))
        thread.start()
        while not os.access(folder.users, os.W_OK):
            thread.join(0.01)
        assert "is not root's" in as_user(1, lambda: key_of_host(folder))
        thread.join(HANG)


def test_without_an_agent_the_error_says_where_a_key_comes_from() -> None:
    folder = AgentDirectory(Path("/no/agent"))
    with pytest.raises(InputError, match=r"no agent of root at .* gives this user a key"):
        remote_controller("10.0.0.1:7000", None, folder)
