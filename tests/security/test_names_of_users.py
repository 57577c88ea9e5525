"""A user has one name: whoever writes it in other ways gets no second share of anything."""

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from live.other_users import AS_ROOT, NOBODY, as_user
from security.open_site import open_site

from penstock.errors import InputError
from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.users import name_of

pytestmark = [pytest.mark.security, AS_ROOT]

DAEMON = 1


@pytest.fixture
def site() -> Iterator[StateDirectory]:
    with open_site(limited=True) as state:
        yield state


def begin(stack: ExitStack, site: StateDirectory, user: str) -> None:
    connection = stack.enter_context(ControlConnection(site.controller))
    job = messages.BeginJob(name="job", pid=os.getpid(), command=["job"], user=user)
    connection.ask(job, messages.JobAccepted)


def test_a_number_with_zeros_in_front_is_no_other_user(site: StateDirectory) -> None:
    def attack() -> object:
        with ExitStack() as stack:
            begin(stack, site, name_of(NOBODY))
            for zeros in range(3):
                try:
                    begin(stack, site, "0" * zeros + str(NOBODY))
                except InputError:
                    continue
            status = ControlConnection(site.controller).ask(messages.GetStatus(), messages.Status)
            return sorted({job.user for job in status.jobs if job.state == "running"})

    assert as_user(NOBODY, attack) == str([name_of(NOBODY)])


def test_one_user_leaves_room_at_the_controller(site: StateDirectory) -> None:
    """With each way of writing a number it had the jobs of one more user."""
    ready, done = os.pipe(), os.pipe()

    def attack() -> object:
        begun = 0
        with ExitStack() as stack:
            for number in range(190):
                try:
                    begin(stack, site, "0" * number + str(NOBODY))
                    begun += 1
                except (InputError, OSError):
                    break
            for _ in range(10):
                stack.enter_context(ControlConnection(site.controller))
            os.write(ready[1], b"r")
            os.read(done[0], 1)
        return begun

    child = os.fork()
    if child == 0:
        as_user(NOBODY, attack)
        os._exit(0)
    try:
        os.read(ready[0], 1)

        def connect() -> str:
            with ExitStack() as stack:
                begin(stack, site, name_of(DAEMON))
            return "ran"

        assert as_user(DAEMON, connect) == "ran"
        assert launcher.ask(site, messages.GetStatus(), messages.Status).jobs
    finally:
        os.write(done[1], b"d")
        os.waitpid(child, 0)
        for end in (*ready, *done):
            os.close(end)
