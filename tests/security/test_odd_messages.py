"""What fuzzers found in control messages: each is refused, and ends nothing but its connection."""

import asyncio
import os
import socket
import time
from pathlib import Path

import msgspec
import pytest
from limits import HANG
from live.controller.turn_deployment import Deployed, deployed

from penstock.errors import InputError
from penstock.live.agent.node_agent import NodeAgent
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol import _page_layout as layout
from penstock.live.protocol import client, messages
from penstock.live.protocol.hook_messages import AdoptJob, AgentDirectory
from penstock.live.protocol.shared_page import SharedPages
from penstock.live.protocol.users import uid_of

DEEP = b'{"type":"Ask","x":' + b"[" * 20_000 + b"]" * 20_000 + b"}\n"
pytestmark = pytest.mark.security


def test_messages_are_decoded_in_one_way() -> None:
    for text in (DEEP, b'{"type":"Ask\xff"}', b"{", b'{"type":"Other"}'):
        with pytest.raises(msgspec.DecodeError):
            messages.decode(text, messages.GetStatus)
        with pytest.raises(ConnectionError):
            client.decode_line(text, messages.GetStatus)


def test_a_controller_answers_them(tmp_path: Path) -> None:
    """And a file in its spool does not keep it from the others'."""
    with deployed(tmp_path) as site:
        launcher.up(Deployment(state=str(site.state.folder), roots=[str(site.root)], io_nodes=0))
        (site.state.exit_spool / "deep.json").write_bytes(DEEP)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(HANG)
            connection.connect(str(site.state.controller))
            connection.sendall(DEEP)
            client.decode_line(connection.makefile("rb").readline(), messages.Failure)
        until_read(site)
        assert b"Traceback" not in site.state.log.read_bytes()


def until_read(site: Deployed) -> None:
    while list(site.state.exit_spool.iterdir()):
        time.sleep(0.05)


@pytest.mark.parametrize("change", [{"gid": 2**32}, {"uid": -1}, {"uid": 2**40}])
def test_an_agent_refuses_numbers_that_no_user_has(change: dict[str, int]) -> None:
    valid = AdoptJob(job="7", uid=os.geteuid(), gid=os.getegid(), user="x")
    text = msgspec.json.encode(msgspec.to_builtins(valid) | change)
    assert "at `$." in answer_of_agent(text).error


def test_an_agent_answers_them() -> None:
    assert "recursion" in answer_of_agent(DEEP.replace(b"Ask", b"List")).error


def answer_of_agent(text: bytes) -> messages.Failure:
    agent = NodeAgent(AgentDirectory(Path("/nowhere")), Path("/nowhere/controller"))
    answer = asyncio.run(agent.answer(text))
    assert isinstance(answer, messages.Failure)
    return answer


@pytest.mark.parametrize("user", [str(2**32 - 1), "9" * 5000, "\u0663", "a\0b", ""])
def test_a_number_that_no_user_has_is_no_users(user: str) -> None:
    assert uid_of(user) == -1
    assert uid_of(str(2**32 - 2)) == 2**32 - 2


@pytest.mark.parametrize("stripe", [-1, 2**64])
def test_a_map_that_cannot_be_leaves_the_one_in_force(tmp_path: Path, stripe: int) -> None:
    """Half written, its version would stay odd, and programs would read it again and again."""
    with SharedPages([tmp_path]) as pages:
        before = os.pread(pages.control_fd, layout.CONTROL_BYTES, 0)
        with pytest.raises(InputError):
            pages.assign([messages.Node(number=0, id=1, address="/x")], stripe=stripe)
        assert os.pread(pages.control_fd, layout.CONTROL_BYTES, 0) == before
    for kind in ("Mapped", "Begun", "Remap"):
        text = f'{{"type":"{kind}","job":"a.1","roots":[],"nodes":[],"stripe":{stripe}}}'
        with pytest.raises(msgspec.ValidationError, match="stripe"):
            messages.decode(text.encode(), messages.NodeMap | messages.JobAccepted | messages.Remap)
