"""penstock explain: every state, mode and counter of a job has its sentence."""

from typing import Any

import pytest
from cli.standing_jobs import MIB, job, node, status
from msgspec import structs

from penstock.errors import InputError
from penstock.live.controller.explain import FAIL_OPENS, explain
from penstock.live.protocol import messages
from penstock.live.protocol.io_node_record import AllocationStatus, IoNodeRecord
from penstock.live.protocol.job_record import JobAllocation, fail_opens, zero_bytes_reason

WAITS: dict[str, Any] = {
    "doing": "waiting",
    "since_seconds": 2.0,
    "at_most_seconds": 28.0,
    "behind": ["a.1", "b.2"],
}
ENDED: dict[str, Any] = {"state": "ended", "status": 0, "doing": "ended"}
OBSERVED: dict[str, Any] = {"phases": 1, "phases_by_mode": {"observe": 1}}


def page(matches: messages.Status, name: str = "x.9") -> str:
    message = explain(matches, name)
    return " ".join([*message.now, *message.did, *message.through, message.advice or ""])


@pytest.mark.parametrize(
    ("record", "there"),
    [
        (
            WAITS,
            [
                "It has been waiting for its turn for 2 s, for a.1, behind b.2.",
                "It goes on in 28 s at the latest, with or without its turn: live.max-wait counts "
                "from the beginning of its phase.",
            ],
        ),
        (
            WAITS | {"mode": "observe"},
            ["It transfers; if turns were enforced, it would have been waiting for 2 s"],
        ),
        (
            {"doing": "transferring", "since_seconds": 1.0, "share": 0.25},
            ["for 1 s; its share is 25% granted."],
        ),
        (
            {"doing": "transferring", "since_seconds": 1.0, "share": 0.25, "received": 0.26},
            ["its share is 25% granted, 26% received (of the bytes that all jobs moved"],
        ),
        (  # both of two jobs had half, and each was said to be granted everything
            {"doing": "transferring", "since_seconds": 1.0, "share": 1.0, "mode": "observe"},
            ["for 1 s; if turns were enforced, its share would be 100%."],
        ),
        (
            {"doing": "transferring", "since_seconds": 1.0, "share": 0.5, "out_of_turn": True},
            ["transferring for 1 s, without a turn; its share is 50% granted."],
        ),
        ({}, ["It computes"]),
        (
            {"state": "ended", "status": 0, "doing": "ended"},
            ["(exit status 0) after 1.67 min"],
        ),
        ({"state": "ended", "status": 3, "doing": "ended"}, ["(exit status 3)"]),
        ({"state": "lost", "doing": "ended"}, ["It is lost", "within the lease"]),
        (
            {"group": None, "weight": 1.0},
            [
                "Its mode is enforce (the site's): its share is enforced.",
                "Under set-10 it never waits: it shares with all jobs that transfer; its weight is",
            ],
        ),
        (
            {"mode": "observe"},
            ["it never waits", "it is in set 1, and would take turns with the jobs of that set"],
        ),
        ({}, ["it is in set 1", "its weight is 0.1", "(w_iter) is not known"]),
        (
            {"group": "5", "weight": 1e-05},
            ["1e-05. The", "set of jobs with no history"],
        ),
        ({"w_iter": 12.0, "iterations": 1}, ["w_iter is 12 s, learnt from 1 iteration of this"]),
        (
            {"w_iter": 12.0, "iterations": 5, "earlier_iterations": 12, "executable": "py3"},
            ["from 5 iterations of this run and earlier runs of the application 'py3'."],
        ),
        ({"w_iter": 12.0}, ["from what is known of its application"]),
        ({"io_nodes": []}, ["It has no I/O nodes"]),
        ({"phases": 2, "phase_bytes": MIB}, ["It had 2 phases, 1 MiB each"]),
        ({"phases": 1, "phase_bytes": MIB}, ["It had 1 phase, 1 MiB."]),
        (
            {"phases": 1, "phase_bytes": 150 * MIB, "forwarded_bytes": 128 * MIB},
            ["it moved 128 MiB", "Its phases moved 150 MiB: a phase is reported when it ends"],
        ),
        (
            {"direct_bytes": 15 * MIB, "counters": {"left_bytes": 15 * MIB}},
            ["it moved 15 MiB: 0 B read, 0 B written, 15 MiB copied in the kernel."],
        ),
        ({"best_bandwidth": 3.0 * MIB}, ["Its best phase reached 3 MiB/s"]),
        (
            WAITS | {"turn_waited_seconds": 2.5},
            ["It waited for turns for 2.5 s, 2% of its time."],
        ),
        (  # it was observed when its phase began: how long it really waits, its end will say
            WAITS | {"turn_waited_seconds": 0.5},
            ["It waited for turns for 500 ms, 0% of its time, without its present wait."],
        ),
        (
            WAITS | {"would_have_waited_seconds": 5.0, "mode": "observe"},
            ["would have waited for turns for 5 s, 5% of its time, without its present wait."],
        ),
        ({"turn_waited_seconds": 5.0}, ["It waited for turns for 5 s, 5% of its time"]),
        (  # heard of after its end, when nobody knows its mode: it counted what it waited
            {"state": "ended", "status": 0, "mode": None, "counters": {"turn_waited": 5 * 10**9}},
            ["It waited for turns for 5 s"],
        ),
        ({"turn_waited_seconds": 5.0, "mode": "advise"}, ["It waited for turns for 5 s"]),
        ({"would_have_waited_seconds": 5.0}, ["Enforced, it would have waited for turns for 5 s"]),
        (
            {"phases": 1, "phases_by_mode": {"observe": 1}, "mode": "enforce"},
            ["It was not made to wait in mode observe; enforced, it would not have waited either."],
        ),
        (
            {"phases": 3, "phases_by_mode": {"observe": 1, "enforce": 2}},
            ["It had 3 phases; 1 in mode observe, 2 in mode enforce."],
        ),
        (
            {"phases": 4, "phases_by_mode": {"enforce": 4}},
            ["It had 4 phases; all in mode enforce."],
        ),
        (
            {"phases": 1, "phase_bytes": MIB, "phases_by_mode": {"observe": 1}},
            ["It had 1 phase, 1 MiB; in mode observe."],
        ),
        ({"waits": 7, "waited_seconds": 3.0}, ["at the gate 7 times, 3 s"]),
        ({"waits": 1, "waited_seconds": 3.0}, ["at the gate 1 time, 3 s"]),
        ({"counters": {"lapses": 1}}, ["Fail-open: 1 phase went on without a turn"]),
        ({"counters": {"failed_open": 1200}}, ["Fail-open: 1,200 calls went direct"]),
    ],
)
def test_every_state_has_its_sentence(record: dict[str, Any], there: list[str]) -> None:
    answer = page(status(job("x.9", **record)))
    assert [text for text in there if text not in answer] == []


@pytest.mark.parametrize(
    ("record", "unsaid"),
    [
        (OBSERVED | {"would_have_waited_seconds": 5.0}, "not have waited"),
        (OBSERVED | WAITS | {"mode": "observe"}, "not have waited"),  # it would right now
        ({"phases": 0, "mode": "observe"}, "not have waited"),
        ({"phases": 1, "phases_by_mode": {"off": 1}}, "not have waited"),  # nobody looks then
        ({"turn_waited_seconds": 5.0, "mode": "observe"}, "would have waited"),
        ({"phases": 1}, "not have waited"),
        ({"bandwidth": 3.0 * MIB}, "best phase"),  # of earlier runs of the application
        ({"w_iter": 12.0, "iterations": 5}, "earlier runs"),
        ({"phases": 1, "phase_bytes": MIB, "forwarded_bytes": MIB}, "Its phases moved"),
        ({"w_iter": 12.0}, "no history"),
        ({"group": None}, "its turn"),
        ({"mode": "off"}, "takes turns"),
        ({"mode": "off"}, "set-10"),
        ({"turn_waited_seconds": 5.0}, "present wait"),
        (WAITS | {"turn_waited_seconds": 5.0}, "present wait"),
        (ENDED | {"turn_waited_seconds": 90.0}, "Give it time"),
        (ENDED | {"turn_waited_seconds": 90.0}, "It waits much"),
    ],
)
def test_what_is_not_so_is_not_said(record: dict[str, Any], unsaid: str) -> None:
    assert unsaid not in page(status(job("x.9", **record)))


@pytest.mark.parametrize(
    ("record", "place"),
    [
        (
            {"phases": 4, "phases_by_mode": {"enforce": 4}},
            "Under set-10 it was in set 1, and took turns with the jobs of that set; its weight "
            "was 0.1.",
        ),
        (
            {"phases": 4, "phases_by_mode": {"observe": 4}, "w_iter": 12.0, "iterations": 3},
            "Under set-10 it was in set 1, and would have taken turns with the jobs of that set; "
            "its weight was 0.1. Its w_iter was 12 s, learnt from 3 iterations of this run.",
        ),
        (
            {"phases": 1, "phases_by_mode": {"enforce": 1}, "group": None},
            "Under set-10 it never waited: it shared with all jobs that transferred; its weight "
            "was 0.1.",
        ),
        ({"phases": 4, "phases_by_mode": {"off": 4}}, None),
        ({"phases": 0}, None),  # it did no I/O
    ],
)
@pytest.mark.parametrize("state", ["ended", "lost"])
def test_the_policy_of_a_job_that_ended_is_told_as_past(
    state: str, record: dict[str, Any], place: str | None
) -> None:
    answer = explain(status(job("x.9", **ENDED | record | {"state": state})), "x.9")
    assert len(answer.now) == 1  # that it ended
    did = " ".join(answer.did)
    assert ("set-10" in did) == (place is not None)
    assert place is None or place in did
    assert not any(text in did for text in ("known yet", "Until then", "its weight is"))


RECEIVES_MORE: dict[str, Any] = {
    "doing": "transferring",
    "since_seconds": 9.0,
    "share": 0.02,
    "received": 0.5,
    "io_nodes_used": [0],
    "counters": {"concurrent_calls": 1},
}


@pytest.mark.parametrize(
    ("record", "other", "why"),
    [
        ({}, [0], "It makes one call at a time, and none waits there now: weights cannot hold it"),
        ({}, [1], "no other transferring job uses I/O node 0."),
        ({"mode": "observe"}, [0], "Shares are not enforced in mode observe."),
        ({"received": 0.05}, [0], None),
        ({"received": None}, [0], None),
        ({"counters": {"concurrent_calls": 8}}, [0], None),  # it is not known why
    ],
)
def test_a_share_that_is_not_received_as_granted_is_explained(
    record: dict[str, Any], other: list[int], why: str | None
) -> None:
    """A single writer without waiting requests is not held to its weight."""
    neighbour = job("y.8", doing="transferring", since_seconds=9.0, share=0.98, io_nodes_used=other)
    answer = page(status(job("x.9", **RECEIVES_MORE | record), neighbour))
    assert ("eights" in answer or "Shares are not" in answer) == (why is not None)
    assert why is None or why in answer


@pytest.mark.parametrize(
    ("counters", "reason", "sentence"),
    [
        ({"attached": 0}, "not attached", "No process of it loaded the client library"),
        (
            {"attached": 1, "opens_elsewhere": 2},
            "wrote elsewhere",
            "It opened 2 files for writing outside /data, in /home/me.",
        ),
        ({"attached": 1}, "no file opened", "saw it open no file below /data"),
        ({"attached": 1, "opens": 1}, "no data call", "It opened 1 file below /data, and no read"),
        ({"attached": 1, "opens": 1, "write_bytes": 1}, None, None),
        ({"attached": 1, "opens": 1, "phases": 1}, None, None),  # its first write waits
        ({}, None, None),  # an older agent does not say
    ],
)
def test_zero_bytes_have_their_reason(
    counters: dict[str, int], reason: str | None, sentence: str | None
) -> None:
    assert zero_bytes_reason(counters) == reason
    record = job("x.9", counters=counters, zero_bytes_reason=zero_bytes_reason(counters))
    answer = page(status(record, roots=["/data"], directories={"x.9": ["/home/me"]}))
    assert ("/data" in answer or "No process" in answer) == (sentence is not None)
    assert sentence is None or sentence in answer


@pytest.mark.parametrize(
    ("record", "there"),
    [
        ({"io_nodes": [0, 1]}, ["It may use I/O nodes 0, 1. No I/O node has moved any"]),
        (
            {"io_nodes": [2, 3], "bytes_by_io_node": {"10": 3 * MIB, "2": MIB}},
            ["It may use I/O nodes 2, 3. It moved 1 MiB through I/O node 2, 3 MiB"],
        ),
        ({"io_nodes": [], "bytes_by_io_node": {"0": MIB}}, ["It moved 1 MiB through I/O node 0."]),
        ({"io_nodes": [0], "forwarded_bytes": MIB}, ["I/O nodes decided about 1 MiB of its data."]),
    ],
)
def test_io_nodes_are_those_used_beside_those_allowed(
    record: dict[str, Any], there: list[str]
) -> None:
    answer = page(status(job("x.9", **record)))
    assert [text for text in there if text not in answer] == []


@pytest.mark.parametrize(
    ("record", "schedulers", "sentence"),
    [
        ({}, ["fifo"], "Its calls have credits: it asked 3 times for 50 calls."),
        (ENDED, ["fifo"], "Its calls had credits: it asked 3 times for 50 calls."),
        ({}, ["fifo", "twins"], "Each call asks (scheduler twins): 3 times for 50 calls."),
        (ENDED, ["aioli"], "Each call asked (scheduler aioli): 3 times for 50 calls."),
        ({}, [None], "It asked for permission 3 times for 50 calls."),
    ],
)
def test_credits_and_a_question_for_each_call_are_told_apart(
    record: dict[str, Any], schedulers: list[str | None], sentence: str
) -> None:
    counters = {"questions": 3, "forwarded_reads": 20, "forwarded_writes": 30}
    known = {"io_nodes": list(range(len(schedulers))), "counters": counters, "carried_bytes": 0}
    nodes = [
        node(number) if name is None else node(number, scheduler=name)
        for number, name in enumerate(schedulers)
    ]
    answer = page(status(job("x.9", **known | record), io_nodes=nodes))
    assert sentence in answer
    assert " ask" not in page(status(job("x.9", io_nodes=[0]), io_nodes=nodes))


@pytest.mark.parametrize(
    ("record", "counters", "why"),
    [
        ({}, {"forwarded_writes": 1, "syncs": 2}, None),
        ({}, {"forwarded_writes": 2}, "asks again where its permission was recalled before it"),
        ({"stripe": 65536}, {"forwarded_writes": 1}, "A call asks every I/O node whose stripes"),
        ({"stripe": 65536, "io_nodes_used": [0]}, {"forwarded_writes": 1}, "asks again where"),
    ],
)
def test_more_questions_than_calls_have_their_reason(
    record: dict[str, Any], counters: dict[str, int], why: str | None
) -> None:
    known: dict[str, Any] = {"io_nodes_used": [0, 1], "counters": {"questions": 3} | counters}
    answer = page(status(job("x.9", **known | record)))
    assert ("A call asks" in answer) == (why is not None)
    assert why is None or why in answer


def test_who_carried_its_data_is_said() -> None:
    """An emulated site has no other hosts."""
    carried = {"forwarded_bytes": 2 * MIB, "carried_bytes": MIB, "bytes_by_io_node": {"0": 2 * MIB}}
    hosts = page(status(job("x.9", **carried)))
    assert "I/O nodes of other hosts carried 1 MiB of that." in hosts
    emulated = page(status(job("x.9", **carried), emulated="targets=1"))
    assert "I/O nodes carried 1 MiB of that: the site is emulated, and they stand" in emulated


@pytest.mark.parametrize(
    ("nodes", "record", "why"),
    [
        ([node(0, user="root"), node(1, user="root")], {}, "I/O nodes 0, 1 carry data for root "),
        ([node(0, user="root"), node(1, user="me")], {}, "I/O node 0 carries data for root alone"),
        ([node(0), node(1, state="down")], {"host": "h"}, "I/O node 0 serves jobs on the contr"),
        ([node(0), node(1)], {}, None),
        ([node(0, user="me")], {"host": "h"}, None),
    ],
)
@pytest.mark.parametrize("state", [{}, ENDED])
def test_io_nodes_of_others_are_said_to_be_so(
    nodes: list[IoNodeRecord], record: dict[str, Any], state: dict[str, Any], why: str | None
) -> None:
    """They serve, and not this job: no advice may send its user to look for one that is down."""
    answer = explain(status(job("x.9", io_nodes=[], **record | state), io_nodes=nodes), "x.9")
    assert (" alone" in " ".join(answer.through)) == (why is not None)
    if why is not None:
        assert why in " ".join(answer.through)
        assert answer.advice is not None
        assert "carries data for the user that it runs as" in answer.advice


def test_a_job_whose_io_nodes_are_down_is_sent_to_them() -> None:
    down = [node(0, state="down"), node(1, state="not connected")]
    advice = explain(status(job("x.9", direct_bytes=MIB), io_nodes=down), "x.9").advice
    assert advice == "None of its I/O nodes serves now: 'penstock status' lists them."


def test_a_job_that_no_io_node_serves_is_told_whom_they_serve() -> None:
    site = AllocationStatus(
        policy="size", placement="own", fallback="own", settle=1.0, moves=0, reasons={}
    )
    decided = JobAllocation(io_nodes=[], reason="unreachable")
    record = job("x.9", io_nodes=[], would_have=[], mode="observe", allocation=decided)
    there = [node(0, user="root"), node(1, user="root")]
    answer = page(status(record, io_nodes=there, allocation=site))
    assert "it would have no I/O node (direct): I/O nodes 0, 1 carry data for root alone" in answer
    assert "can reach is up" not in answer


def test_impossible_counters_are_said_to_be_the_jobs_own() -> None:
    answer = page(status(job("x.9", counters={"write_bytes": 2**63 - 1, "implausible": 2})))
    assert "It wrote impossible values into 2 counters of its own: its figures" in answer
    assert "impossible" not in page(status(job("x.9", counters={"implausible": 0})))


def test_jobs_with_no_history_have_a_set_only_where_there_are_sets() -> None:
    assert "no history" in page(status(job("x.9")))
    assert "no history" not in page(status(job("x.9"), policy="fair-share"))


@pytest.mark.parametrize(
    ("modes", "mode", "own", "message"),
    [
        ({}, "enforce", "enforce", "Its mode is enforce (the site's)"),
        ({"me": "enforce"}, "observe", "enforce", "Its mode is enforce (me's own)"),
        ({"me": "enforce"}, "off", "off", "Its mode is off (the site's): the kill switch"),
    ],
)
def test_a_mode_says_whose_it_is(modes: dict[str, str], mode: str, own: str, message: str) -> None:
    assert message in page(status(job("x.9", mode=own), mode=mode, modes=modes))


def test_every_fail_open_is_explained() -> None:
    """A counter that adds to the total and has no sentence would be a riddle."""
    for counter in FAIL_OPENS:
        counters = {counter: 3}
        answer = page(status(job("x.9", counters=counters, fail_opens=fail_opens(counters))))
        assert f"({counter})" in answer
        assert "No fail-opens" not in answer
        assert explain(status(job("x.9", counters=counters, fail_opens=3)), "x.9").advice
    assert fail_opens(dict.fromkeys(FAIL_OPENS, 1)) == len(FAIL_OPENS)
    assert "No fail-opens" in page(status(job("x.9")))


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({"counters": {"left_bytes": MIB, "left_to_kernel": 2}}, "1 MiB in 2 calls left to"),
        ({"counters": {"failed_open": 2}}, "what 2 calls did when"),
        ({}, "1 MiB while the job had no I/O node, or in files"),
    ],
)
def test_direct_bytes_say_why(record: dict[str, Any], why: str) -> None:
    answer = page(status(job("x.9", direct_bytes=MIB, forwarded_bytes=4 * MIB, **record)))
    assert f"1 MiB went direct: {why}" in answer


def test_an_io_node_that_does_not_serve_is_named() -> None:
    matches = status(job("x.9"), io_nodes=[node(0), node(1, state="not answering")])
    assert "I/O node 1 is not answering" in page(matches)


def test_a_job_that_needs_nothing_gets_no_advice() -> None:
    assert explain(status(job("x.9", forwarded_bytes=MIB)), "x.9").advice is None


def test_a_name_is_the_one_that_runs_and_an_unknown_one_gets_a_hint() -> None:
    matches = status(
        job("solver.1", state="ended", status=0), job("solver.2"), job("a.3"), job("a.4")
    )
    assert explain(matches, "solver").job == "solver.2"
    assert explain(matches, "solver.1").job == "solver.1"
    with pytest.raises(InputError, match=r"a\.3, a\.4"):
        explain(matches, "a")
    with pytest.raises(InputError, match=r"did you mean 'solver\.2'"):
        explain(matches, "solvr.2")
    with pytest.raises(InputError, match="none has run"):
        explain(status(), "a")


def test_the_page_and_its_json_tell_the_same(
    penstock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    matches = status(job("x.9", **WAITS))
    monkeypatch.setattr("penstock.live.deployment.launcher.ask", lambda *_: matches)
    out, answer = penstock("explain", "x").out, penstock("explain", "x", "--json").json
    assert out.startswith("x.9 (me): solver -n 4\n")
    sentences = [*answer["now"], *answer["did"], *answer["through"]]
    assert [text for text in sentences if text not in out] == []
    assert answer["record"]["behind"] == ["a.1", "b.2"]


ALLOCATED = JobAllocation(io_nodes=[1], reason="new", lacks=["curve"], since_seconds=2.0)
SITE = AllocationStatus(
    policy="where-known", placement="balanced", fallback="size", settle=10.0, moves=0, reasons={}
)


@pytest.mark.parametrize(
    ("record", "there", "absent"),
    [
        ({"io_nodes": [1]}, "It has had 1 I/O node (1) for 2 s", "will have"),
        ({"io_nodes": [0, 1]}, "It will have 1 I/O node (1) (decided 2 s ago", "It has had"),
        (ENDED | {"io_nodes": [1]}, "It had 1 I/O node (1) at its end", "Once it has run"),
    ],
)
def test_a_move_that_is_still_to_come_and_a_job_that_is_over_are_told_as_such(
    record: dict[str, Any], there: str, absent: str
) -> None:
    """Under allocation.remap-delay it was said to have what it was to get."""
    site = structs.replace(status(job("x.9", allocation=ALLOCATED, **record)), allocation=SITE)
    assert there in page(site)
    assert absent not in page(site)


def test_direct_bytes_of_a_job_that_was_moved_to_direct_access_are_told() -> None:
    """After 'remap --direct' only what went through I/O nodes was."""
    moved = job("x.9", io_nodes=[], forwarded_bytes=4 * MIB, direct_bytes=2 * MIB)
    assert "2 MiB went direct" in page(status(moved))


def test_an_application_is_answered_with_its_jobs() -> None:
    runs = [job(id, executable="wide.sh") for id in ("bash.1", "bash.2")]
    with pytest.raises(InputError, match=r"name one of its jobs: bash\.1, bash\.2"):
        explain(status(*runs), "wide.sh")
