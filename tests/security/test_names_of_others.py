"""A user who waits for another's job is not told its name: it is that of a program of the other."""

import asyncio
from pathlib import Path

import pytest
from limits import HANG
from security.controller_answers import Answers, answering, begin, cancelled

from penstock.live.controller.explain import behind, explain
from penstock.live.controller.peer import Peer
from penstock.live.protocol import messages
from penstock.live.protocol.client import decode_line, encode_line

pytestmark = pytest.mark.security
ALICE, BOB = Peer(uid=60_001), Peer(uid=60_002)
PHASE = encode_line(messages.PhaseBegan(phase=1))


async def status(answers: Answers, peer: Peer) -> bytes:
    """Return the status as a peer sees it while a job of alice's waits for one of bob's."""
    jobs = [answers.connect(BOB, "bob", begin(BOB, "secretbob") + PHASE, stays=True)]
    await answers.all_of("bob", 2)
    jobs += [answers.connect(ALICE, "alice", begin(ALICE, "of-alice") + PHASE, stays=True)]
    await answers.all_of("alice", 2)
    await answers.connect(peer, "asks", encode_line(messages.GetStatus()))
    (line,) = answers.of("asks")
    await cancelled(jobs)
    return line


@pytest.mark.parametrize("peer", [ALICE, Peer(uid=0)], ids=["another user", "root"])
def test_only_root_and_the_deployments_user_see_the_names_of_anothers_jobs(
    tmp_path: Path, peer: Peer
) -> None:
    """`top` said that alice "waits for secretbob.10027"."""
    with answering(tmp_path) as answers:
        line = asyncio.run(asyncio.wait_for(status(answers, peer), HANG))
        sent = b"".join(answers.of("alice"))
    seen = decode_line(line, messages.Status)
    (alice,) = (job for job in seen.jobs if job.name == "of-alice")
    texts = behind(alice.behind), str(explain(seen, alice.id))
    if peer == ALICE:
        assert all("for a job of another user" in text for text in texts)
        assert b"secret" not in line
    else:
        assert all("for secretbob.1" in text for text in texts)
    assert b"secret" not in sent, "nor does her agent hear of it"
