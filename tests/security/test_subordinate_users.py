"""Who has subordinate user ids (/etc/subuid, as rootless containers need) is one user with all."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest
from live.conftest import folder, serve
from live.ionode.frames import GoneError
from live.ionode.permissions import Caller
from live.ionode.real_node import Serve
from live.other_users import AS_ROOT, NOBODY, as_user

from penstock.live.controller.peer import Peer, Quotas, RefusedError
from penstock.live.protocol.users import SubordinateIds, SubordinateRange

__all__ = ["folder", "serve"]
pytestmark = pytest.mark.security
FIRST = 200_000
"""Of ids that no user of this host has."""
OWNER = 54_321


def subordinate_ids(folder: Path) -> Path:
    path = folder / "subuid"
    path.write_text(f"root:300000:65536\nno such user:9:9\n{OWNER}:{FIRST}:65536\n{OWNER}:x:1\n")
    return path


@AS_ROOT
def test_many_user_ids_leave_room_at_an_io_node(serve: Serve, tmp_path: Path) -> None:
    """Each had at least one connection: 250 of them all descriptors, the control socket's too."""
    node = serve(
        "--all-users",
        descriptors=256,
        in_place_of={Path("/etc/subuid"): subordinate_ids(tmp_path)},
    )
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
        assert 0 < node.measured().connections <= 128, "its controller reaches it"

        def calls() -> object:
            with Caller(node.socket) as caller:
                return caller.make(4096).calls > 0

        assert as_user(NOBODY, calls) == "True"


def test_whose_a_subordinate_id_is(tmp_path: Path) -> None:
    ids = SubordinateIds(subordinate_ids(tmp_path))
    assert ids.ranges == (SubordinateRange(first=FIRST, count=65536, owner=OWNER),)
    assert [ids.owner(uid) for uid in (FIRST - 1, FIRST, FIRST + 65535, FIRST + 65536, 0)] == [
        None,
        OWNER,
        OWNER,
        None,
        None,
    ]


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = subordinate_ids(tmp_path)
    ids = SubordinateIds(path)
    assert ids.owner(FIRST) == OWNER
    path.write_text("")
    assert ids.owner(FIRST) is None
    path.unlink()
    assert ids.ranges == ()


def test_the_controller_has_no_job_of_a_subordinate_id(tmp_path: Path) -> None:
    """Each could have begun half of all jobs, and had every other turn."""
    quotas = Quotas(subordinate_ids=SubordinateIds(subordinate_ids(tmp_path)))
    with pytest.raises(RefusedError, match=f"user {FIRST} is a subordinate id of {OWNER}"):
        quotas.enter(Peer(uid=FIRST))
    quotas.enter(Peer(uid=OWNER))
