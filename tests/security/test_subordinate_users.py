"""Who has subordinate user ids (/etc/subuid, as rootless containers need) is many users."""

import os
from contextlib import ExitStack

import pytest
from live.conftest import folder, serve
from live.ionode.frames import GoneError
from live.ionode.permissions import Caller
from live.ionode.real_node import Serve
from live.other_users import AS_ROOT, NOBODY, as_user

__all__ = ["folder", "serve"]
pytestmark = [pytest.mark.security, AS_ROOT]
FIRST = 200_000
"""Of ids that no user of this host has."""


@pytest.mark.xfail(strict=True, reason="known: subordinate users count as users")
def test_many_user_ids_leave_room_at_an_io_node(serve: Serve) -> None:
    """Each had at least one connection: 250 of them all descriptors, the control socket's too."""
    node = serve("--all-users", descriptors=256)
    for path in (node.folder.parent, node.folder):
        path.chmod(0o755)
    node.socket.chmod(0o666)
    with ExitStack() as stack:
        for user in range(FIRST, FIRST + 400):
            os.setresuid(user, user, 0)
            try:
                stack.enter_context(Caller(node.socket))
            except GoneError:
                break
            finally:
                os.setresuid(0, 0, 0)
        assert node.measured().connections > 0, "its controller reaches it"

        def calls() -> object:
            with Caller(node.socket) as caller:
                return caller.make(4096).calls > 0

        assert as_user(NOBODY, calls) == "True"
