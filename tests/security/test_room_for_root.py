"""However many jobs users begin, root and the deployment's user reach the controller."""

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from live.other_users import AS_ROOT, as_user
from security.open_site import open_site

from penstock.errors import InputError
from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.users import name_of

pytestmark = [pytest.mark.security, AS_ROOT]
USERS = (1, 65534)


@pytest.fixture
def site() -> Iterator[StateDirectory]:
    with open_site(limited=True) as state:
        yield state


def test_root_sees_and_rules_while_two_users_have_all_the_jobs_they_may(
    site: StateDirectory,
) -> None:
    """Half of all connections each: root had neither the status nor `penstock mode off`."""
    ready, done = os.pipe(), os.pipe()

    def hold(user: int) -> str:
        with ExitStack() as stack:
            for _ in range(200):
                try:
                    connection = stack.enter_context(ControlConnection(site.controller))
                    begin = messages.BeginJob(
                        name="job", pid=os.getpid(), command=["x"], user=name_of(user)
                    )
                    connection.ask(begin, messages.JobAccepted)
                except (InputError, OSError):
                    break
            os.write(ready[1], b"r")
            os.read(done[0], 1)
        return ""

    children = []
    for user in USERS:
        child = os.fork()
        if child == 0:
            as_user(user, lambda user=user: hold(user))  # type: ignore[misc]
            os._exit(0)
        children.append(child)
    try:
        for _ in children:
            assert os.read(ready[0], 1) == b"r"
        assert launcher.ask(site, messages.GetStatus(), messages.Status).jobs
        assert launcher.ask(site, messages.SetMode(mode="off"), messages.Done)
    finally:
        os.write(done[1], b"d" * len(children))
        for child in children:
            os.waitpid(child, 0)
