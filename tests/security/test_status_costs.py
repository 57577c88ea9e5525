"""What it costs to answer a user's question does not grow with the jobs of others, nor squared."""

import asyncio
from pathlib import Path

import pytest
from limits import HANG
from security.controller_answers import Answers, answering, begin, cancelled

from penstock import registry
from penstock.core.ledger import Ledger, decide
from penstock.core.manager import Manager
from penstock.live.controller.explain import behind
from penstock.live.controller.peer import Peer
from penstock.live.controller.status import BEHIND
from penstock.live.protocol import messages
from penstock.live.protocol.client import decode_line, encode_line
from penstock.model import Job, JobStarted, PhaseBegan, Site

pytestmark = pytest.mark.security
ALICE, BOB, HOST = Peer(uid=60_001), Peer(uid=60_002), Peer(address="10.0.0.5")
FEW, MANY = 12, 48


async def status(answers: Answers, peer: Peer, jobs: int) -> tuple[bytes, int]:
    """Return a peer's answer while alice's jobs wait, and how often the clock was read for it."""
    phase = encode_line(messages.PhaseBegan(phase=1))
    connections = [
        answers.connect(ALICE, "alice", begin(ALICE) + phase, stays=True) for _ in range(jobs)
    ]
    await answers.all_of("alice", 2 * jobs)
    before = answers.ticks()
    await answers.connect(peer, "asks", encode_line(messages.GetStatus()))
    read = answers.ticks() - before
    await cancelled(connections)
    return answers.of("asks")[0], read


def ask_status(folder: Path, peer: Peer, jobs: int) -> tuple[bytes, int]:
    folder.mkdir()
    with answering(folder) as answers:
        return asyncio.run(asyncio.wait_for(status(answers, peer, jobs), HANG))


def test_jobs_that_a_user_does_not_see_are_not_described(tmp_path: Path) -> None:
    """Each one was, and left out then: each description reads the clock."""
    of_few, of_many = (ask_status(tmp_path / str(jobs), BOB, jobs)[1] for jobs in (FEW, MANY))
    assert of_many <= of_few + FEW


@pytest.mark.parametrize("peer", [ALICE, HOST], ids=["their user", "a trusted host"])
def test_an_answer_names_the_first_jobs_ahead_and_how_many_there_are(
    tmp_path: Path, peer: Peer
) -> None:
    """950 jobs that waited: 12.7 MB, and as much work squared."""
    seen = decode_line(ask_status(tmp_path / "site", peer, MANY)[0], messages.Status)
    assert len(seen.jobs) == MANY
    assert [job.ahead for job in seen.jobs] == list(range(MANY))
    assert [len(job.behind) for job in seen.jobs] == [min(k, BEHIND) for k in range(MANY)]
    last = seen.jobs[-1]
    assert behind(last.behind, last.ahead).endswith(f" and {MANY - 1 - 4} more")


class Name(str):
    """The name of a job, which counts comparisons."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other) is True

    __hash__ = str.__hash__


def test_each_queue_is_put_in_order_once() -> None:
    def compared(jobs: int) -> float:
        ledger = Ledger(site=Site())
        manager = Manager(sharing=registry.sharing("exclusive-fcfs"), view=ledger)
        ledger.attend(manager)
        names = [Name(f"job{k}") for k in range(jobs)]
        for k, name in enumerate(names):
            decide(manager, ledger, JobStarted(time=0.0, job=Job(id=name, serial=k)))
            decide(manager, ledger, PhaseBegan(time=1.0, job=name, resources=(0,)))
        queues, before = manager.queue_index(), Name.compared
        ahead = [queues.ahead_of(name, BEHIND) for name in names]
        assert [count for _, count in ahead] == list(range(jobs))
        assert queues.is_ahead(names[0], names[-1])
        assert queues.is_ahead(names[1], names[2])
        assert not queues.is_ahead(names[2], names[1])
        assert not queues.is_ahead(names[1], names[0])
        return (Name.compared - before) / jobs

    assert compared(4 * FEW) <= compared(FEW) + 1
