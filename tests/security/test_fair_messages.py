"""A user who sends without end costs that user: others' messages are handled between its own."""

import asyncio
import json
import os
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest
from limits import HANG
from live.controller.turn_harness import TurnHarness
from live.other_users import AS_ROOT, NOBODY, as_user
from security.controller_answers import Answers, answering, begin, cancelled
from security.open_site import open_site

from penstock.live.controller.fair_messages import PER_ROUND, ROUND, FairMessages
from penstock.live.controller.lines import UNFINISHED, UnfinishedLines
from penstock.live.controller.pace import BEGINNINGS, JOB_LINES, LONGEST_DELAY, QUESTIONS, JobLog
from penstock.live.controller.peer import Peer
from penstock.live.protocol import messages
from penstock.live.protocol.client import MAX_LINE_BYTES, encode_line
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.visitors import PER_PEER

pytestmark = pytest.mark.security
FLOOD, CONNECTIONS = 200, 60
DAEMON = 1
ALICE, BOB, HOST = Peer(uid=60_001), Peer(uid=60_002), Peer(address="10.0.0.5")


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[Answers]:
    with answering(tmp_path) as made:
        yield made


PHASES = b"".join(
    encode_line(messages.PhaseBegan(phase=k))
    + encode_line(messages.PhaseEnded(phase=k, bytes=1, seconds=0.0, waited=0.0))
    for k in range(1, FLOOD)
)


def test_users_are_handled_in_rotation() -> None:
    async def order() -> list[str]:
        messages, passed = FairMessages(1, clock=lambda: 0.0), list[str]()

        async def one(user: str) -> None:
            await messages.next_of(user)
            passed.append(user)

        users = [*CONNECTIONS * "a", *CONNECTIONS * "b", "c"]
        await asyncio.gather(*map(one, users))
        return passed

    passed = asyncio.run(order())
    assert passed[:6] == ["a", "a", "b", "c", "a", "b"], "the first one did not have to wait"
    assert sorted(passed) == sorted([*CONNECTIONS * "a", *CONNECTIONS * "b", "c"])


def test_a_few_messages_are_handled_per_round_of_the_loop() -> None:
    """Whatever is due besides, heartbeats for example, comes between any two of them."""

    async def most_per_round() -> int:
        messages, passed, most, seen = FairMessages(3, clock=lambda: 0.0), 0, 0, 0

        async def one() -> None:
            nonlocal passed
            await messages.next_of("a")
            passed += 1

        ones = [asyncio.create_task(one()) for _ in range(CONNECTIONS)]
        while passed < CONNECTIONS:
            await asyncio.sleep(0)
            most, seen = max(most, passed - seen), passed
        await asyncio.gather(*ones)
        return most

    assert asyncio.run(most_per_round()) == 3


def test_a_round_ends_after_its_time() -> None:
    """Eight messages of 20 ms each were handled before anything else."""
    now, rounds = 0.0, list[int]()

    async def handle() -> None:
        nonlocal now
        messages, passed = FairMessages(clock=lambda: now), 0

        async def one() -> None:
            nonlocal passed, now
            await messages.next_of("a")
            passed += 1
            now += 0.6 * ROUND

        ones = [asyncio.create_task(one()) for _ in range(CONNECTIONS)]
        while passed < CONNECTIONS:
            before = passed
            await asyncio.sleep(0)
            now += 2 * ROUND  # whatever else the loop does
            rounds.append(passed - before)
        await asyncio.gather(*ones)

    asyncio.run(asyncio.wait_for(handle(), HANG))
    assert max(rounds) == 2
    assert sum(rounds) == CONNECTIONS


def test_users_are_charged_by_the_time_of_their_messages() -> None:
    """Of two users, one whose messages take ten times as long has a tenth as many handled."""
    now = 0.0

    async def order() -> str:
        nonlocal now
        messages, passed = FairMessages(clock=lambda: now), ""

        async def one(user: str, seconds: float) -> None:
            nonlocal passed, now
            await messages.next_of(user)
            passed += user
            now += seconds

        slow = [one("s", 10 * ROUND) for _ in range(CONNECTIONS)]
        await asyncio.gather(*slow, *(one("f", ROUND) for _ in range(CONNECTIONS)))
        return passed

    passed = asyncio.run(asyncio.wait_for(order(), HANG))
    until = passed[: passed.rindex("f")]
    assert 4 <= until.count("s") <= 10, passed


def test_the_ends_of_many_jobs_of_a_user_leave_room_for_others(answers: Answers) -> None:
    """A thousand jobs that ended at once held the controller for seconds, in one round."""

    async def most_per_round() -> int:
        for k in range(CONNECTIONS):
            phase = encode_line(messages.PhaseBegan(phase=1))
            answers.connect(ALICE, f"alice.{k}", begin(ALICE) + phase, stays=True)
        while len(answers.sent) < 2 * CONNECTIONS:
            await asyncio.sleep(0)
        for reader in answers.readers:
            reader.feed_eof()
        running, most = answers.controller.jobs.running, 0
        while before := len(running):
            await asyncio.sleep(0)
            most = max(most, before - len(running))
        return most

    assert asyncio.run(asyncio.wait_for(most_per_round(), HANG)) <= PER_ROUND


def test_a_controller_that_stops_loses_no_jobs_end(answers: Answers) -> None:
    async def stop() -> None:
        jobs = [
            answers.connect(ALICE, f"alice.{k}", begin(ALICE), stays=k % 2 == 0)
            for k in range(CONNECTIONS)
        ]
        while len(answers.sent) < CONNECTIONS:
            await asyncio.sleep(0)
        for reader in answers.readers[:CONNECTIONS:2]:
            reader.feed_eof()
        await asyncio.sleep(0)  # some wait to have their end handled
        await cancelled(jobs)

    asyncio.run(asyncio.wait_for(stop(), HANG))
    assert not answers.controller.jobs.running
    assert len(list(answers.controller.jobs.ended())) == CONNECTIONS


def test_a_beginning_waits_no_longer_than_its_agent(tmp_path: Path) -> None:
    """The wait for other messages was not counted: a job ran unmanaged after 5.4 s."""
    with answering(tmp_path, tick=0.05) as answers:

        async def answered() -> None:
            many = [answers.connect(ALICE, "job", begin(ALICE), stays=True) for _ in range(120)]
            await answers.all_of("job", 120)
            await cancelled(many)

        asyncio.run(asyncio.wait_for(answered(), HANG))
        refused = [line for line in answers.of("job") if b"than they can be answered" in line]
        begun = [line for line in answers.of("job") if b'"Begun"' in line]
    assert begun
    # Nothing of a job is done for whoever is refused, so that takes a few readings of the clock.
    assert len(refused) > len(begun)
    assert len(refused) + len(begun) == 120


def test_a_connection_that_ended_holds_up_nobody() -> None:
    async def passes() -> None:
        messages = FairMessages(1)
        await messages.next_of("b")
        gone = [asyncio.create_task(messages.next_of("a")) for _ in range(CONNECTIONS)]
        stays = asyncio.create_task(messages.next_of("a"))
        await asyncio.sleep(0)
        for task in gone:
            task.cancel()
        await asyncio.wait_for(stays, HANG)
        await asyncio.wait_for(messages.next_of("b"), HANG)

    asyncio.run(passes())


@pytest.mark.parametrize(
    ("of_alice", "of_bob"),
    [(ALICE, BOB), (Peer(uid=0), Peer(uid=0)), (HOST, HOST)],
    ids=["their own", "of root's agent", "of another host's agent"],
)
def test_phases_of_many_jobs_of_a_user_leave_room_for_others(
    answers: Answers, of_alice: Peer, of_bob: Peer
) -> None:
    """Each job kept its pace, and two hundred of them stopped the controller."""

    async def answered_meanwhile() -> int:
        many = [
            answers.connect(of_alice, f"alice.{k}", begin(ALICE), stays=True)
            for k in range(CONNECTIONS)
        ]
        while len(answers.sent) < CONNECTIONS:  # all have begun
            await asyncio.sleep(0)
        for reader in answers.readers:
            reader.feed_data(PHASES)
        one = encode_line(messages.PhaseBegan(phase=1))
        honest = answers.connect(of_bob, "bob", begin(BOB) + one)
        while not any(b'"Turn"' in line or b'"Hold"' in line for line in answers.of("bob")):
            await asyncio.sleep(0)
        answered = len(answers.sent) - CONNECTIONS
        await cancelled([*many, honest])
        return answered

    # What is handled until both messages of bob's job are read and handled: a few rounds' messages.
    assert asyncio.run(asyncio.wait_for(answered_meanwhile(), HANG)) <= 4 * PER_ROUND


@pytest.mark.parametrize("line", [b'{"type":"Nonsense"}\n', b"{\n", b"\xff\n"])
def test_what_is_no_message_ends_its_connection(answers: Answers, line: bytes) -> None:
    """A connection that sent nothing else stopped the controller for everybody."""
    asyncio.run(answer_to(answers, ALICE, FLOOD * line))
    (failure,) = answers.of("it")
    assert json.loads(failure)["type"] == "Failed"


async def answer_to(answers: Answers, peer: Peer, lines: bytes) -> None:
    await asyncio.wait_for(answers.connect(peer, "it", lines), HANG)


@pytest.mark.parametrize(
    "request_",
    [
        messages.SetMode(mode="off"),
        messages.Stop(),
        messages.GetStatus(),
        messages.JobExit(counters={}, status=0),  # of no job
    ],
    ids=lambda request: type(request).__name__,
)
def test_requests_of_a_user_are_paced_whatever_they_are(
    answers: Answers, request_: messages.Message
) -> None:
    """On however many connections: refused ones were not. What would wait for too long is refused,
    and ends its connection: what waits takes memory."""
    at_once = QUESTIONS.burst
    later = round(LONGEST_DELAY * QUESTIONS.per_second)
    too_late = PER_PEER - at_once - later  # more connections would be closed

    async def until_others_wait() -> None:
        lines = 2 * encode_line(request_)
        many = [answers.connect(ALICE, f"{k}", lines) for k in range(PER_PEER)]
        while sum(task.done() for task in many) < at_once + too_late:
            await asyncio.sleep(0)
        await cancelled(many)

    asyncio.run(asyncio.wait_for(until_others_wait(), HANG))
    refused = [name for name, line in answers.sent if b"faster than 10 per second" in line]
    assert len(answers.sent) - len(refused) == at_once
    assert len(refused) == len(set(refused)) >= too_late


def test_beginnings_of_jobs_are_paced_by_user(answers: Answers) -> None:
    """A job that began and hung up, again and again: 9 GB of log a day, and as much of store."""

    async def begun() -> int:
        for _ in range(BEGINNINGS.burst):
            await answers.connect(ALICE, "at once", begin(ALICE))
        waits = answers.connect(ALICE, "later", begin(ALICE))
        await answers.connect(BOB, "bob", begin(BOB))
        await cancelled([waits])
        return sum(b'"Begun"' in line for line in answers.of("at once"))

    assert asyncio.run(asyncio.wait_for(begun(), HANG)) == BEGINNINGS.burst
    assert answers.of("later") == []
    assert b'"Begun"' in answers.of("bob")[0]


def test_lines_of_the_log_on_jobs_are_bounded_by_user(caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    jobs = JobLog(lambda: now)
    with caplog.at_level("INFO"):
        for k in range(3 * JOB_LINES.burst):
            jobs.note("alice", "job %d began", k)
        jobs.note("bob", "job %s began", "bob's")
        now += 1.5
        jobs.note("alice", "job %s began", "the next")
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == JOB_LINES.burst + 3
    assert lines[-3:] == [
        "job bob's began",
        f"left out {2 * JOB_LINES.burst} lines on jobs of user alice",
        "job the next began",
    ]


def test_lines_on_what_was_decided_for_jobs_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """One line per job, or more, that the others' bound did not hold for."""
    site = TurnHarness(allocation="one", mode="observe")
    with caplog.at_level("INFO", "penstock.controller"):
        for k in range(JOB_LINES.burst + FLOOD):
            site.turn_service.ended(site.start(f"job{k}"))
    decided = [record for record in caplog.records if "decided" in record.getMessage()]
    assert len(decided) == JOB_LINES.burst


def test_a_job_that_hangs_up_fills_no_log(
    answers: Answers, caplog: pytest.LogCaptureFixture
) -> None:
    """A line for each phase that it had reported before: nobody was there to be told its turn."""

    async def hang_up() -> None:
        job = answers.connect(ALICE, "alice", begin(ALICE) + PHASES)
        while not answers.sent:
            await asyncio.sleep(0)
        answers.wires[0].close()
        sent = len(answers.sent)
        await job
        assert len(answers.sent) == sent

    asyncio.run(asyncio.wait_for(hang_up(), HANG))


# Lines without an end.


def test_lines_without_an_end_are_bounded_by_user() -> None:
    """300 jobs with an unfinished line each: 270 MB that were never freed."""
    lines, closed = UnfinishedLines(most=100), list[str]()

    def close(name: str) -> Callable[[], object]:
        return partial(closed.append, name)

    ends = {name: close(name) for name in ("a", "b", "c")}
    lines.keep("alice", ends["a"], 40)
    lines.keep("alice", ends["b"], 50)
    lines.keep("bob", ends["c"], 100)
    assert closed == []
    lines.keep("alice", ends["a"], 50)
    assert closed == []
    lines.keep("alice", ends["a"], 60)
    assert closed == ["a"], "the longest of who has too much"
    lines.keep("alice", ends["b"], 0)
    lines.keep("alice", ends["c"], 100)
    assert closed == ["a"], "what came to its end is not counted"


def test_a_long_beginning_is_accepted(answers: Answers) -> None:
    """On more connections than there is room for lines of this length without an end."""
    long = begin(ALICE).replace(b'"x"', b'"' + 900_000 * b"x" + b'"')

    async def begun() -> None:
        for _ in range(12):
            await answers.connect(ALICE, "long", long)

    asyncio.run(asyncio.wait_for(begun(), HANG))
    assert [b'"Begun"' in line for line in answers.of("long")] == 12 * [True]


def test_an_endless_line_ends_its_connection(answers: Answers) -> None:
    endless = b"x" * (2 * MAX_LINE_BYTES)

    async def send() -> None:
        await asyncio.wait_for(answers.connect(ALICE, "it", endless, stays=True), HANG)

    asyncio.run(send())
    assert answers.of("it") == []


@AS_ROOT
def test_connections_without_an_end_of_their_line_are_closed() -> None:
    with open_site() as site:

        def most() -> int:
            """Return how many connections with most of a line the controller keeps."""
            with ExitStack() as stack:
                jobs = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(16)]
                for job in jobs:
                    job.settimeout(HANG)
                    job.connect(str(site.controller))
                    job.sendall(begin(Peer(uid=os.getuid())))
                    job.makefile("rb").readline()
                for job in jobs:
                    with suppress(OSError):
                        job.sendall(b"x" * (MAX_LINE_BYTES - 4096))
                # One of the others is read to its end first.
                with socket.socket(socket.AF_UNIX) as last:
                    last.connect(str(site.controller))
                    last.sendall(encode_line(messages.GetStatus()))
                    last.makefile("rb").readline()
                closed = 0
                for job in jobs:
                    poll = select.poll()
                    poll.register(job, select.POLLRDHUP)
                    closed += bool(poll.poll(0))
                return len(jobs) - closed

        # The kernel has up to a quarter of each.
        assert 6 <= int(as_user(NOBODY, most)) <= UNFINISHED // MAX_LINE_BYTES * 3 // 2


@AS_ROOT
def test_connections_that_come_too_fast_are_closed_at_once() -> None:
    """What a user connects and closes waits for the same accept as everybody's."""
    with open_site() as site:
        began = time.monotonic()

        def connect() -> str:
            for _ in range(10 * CONNECTIONS):
                with socket.socket(socket.AF_UNIX) as one:
                    one.connect(str(site.controller))
            return "connected"

        while "nobody: too many connections in a short time" not in site.log.read_text():
            assert time.monotonic() - began < HANG
            assert as_user(NOBODY, connect) == "connected"
        answer = as_user(DAEMON, lambda: begun(site))
        assert "Begun" in answer


def begun(site: StateDirectory) -> bytes:
    with socket.socket(socket.AF_UNIX) as job, job.makefile("rb") as lines:
        job.connect(str(site.controller))
        job.sendall(begin(Peer(uid=os.getuid())))
        return lines.readline()
