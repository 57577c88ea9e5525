"""What jobs say of themselves leaves room in what the controller answers of all."""

import os
from collections.abc import Iterator

import pytest
from live.other_users import AS_ROOT, NOBODY, as_user
from security.open_site import open_site

from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.users import name_of

pytestmark = [pytest.mark.security, AS_ROOT]
LARGE = 900_000
"""Bytes: less than a message may have, and than a command may have on Linux (2 MiB)."""


@pytest.fixture
def site() -> Iterator[StateDirectory]:
    with open_site() as state:
        yield state


def runs(site: StateDirectory, command: list[str]) -> object:
    with ControlConnection(site.controller) as connection:
        begin = messages.BeginJob(
            name="job", pid=os.getpid(), command=command, user=name_of(NOBODY)
        )
        connection.ask(begin, messages.JobAccepted)
        connection.ask(messages.JobExit(counters={}, status=0), messages.Done)
    return "ran"


def test_long_commands_leave_the_status_readable(site: StateDirectory) -> None:
    """Two of one user's, and nobody saw the site's state until a hundred other jobs had ended."""
    for _ in range(2):
        assert as_user(NOBODY, lambda: runs(site, ["x" * LARGE])) == "ran"
    status = launcher.ask(site, messages.GetStatus(), messages.Status)
    assert len(status.jobs) == 2
