"""penstock explain: every state, mode and counter of a job has its sentence."""

from typing import Any

import pytest
from cli.standing_jobs import MIB, job, node, status

from penstock.errors import InputError
from penstock.live.controller.explain import FAIL_OPENS, explain
from penstock.live.protocol import messages
from penstock.live.protocol.job_record import fail_opens

WAITS: dict[str, Any] = {
    "doing": "waiting",
    "since_seconds": 2.0,
    "at_most_seconds": 28.0,
    "behind": ["a.1", "b.2"],
}


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
                "28 s at the latest",
            ],
        ),
        (
            WAITS | {"mode": "observe"},
            ["It transfers; if turns were enforced, it would have been waiting for 2 s"],
        ),
        (
            {"doing": "transferring", "since_seconds": 1.0, "share": 0.25},
            ["for 1 s; its share of the file system is 25%"],
        ),
        ({}, ["It computes"]),
        (
            {"state": "ended", "status": 0, "doing": "ended"},
            ["(exit status 0) after 1.67 min"],
        ),
        ({"state": "ended", "status": 3, "doing": "ended"}, ["(exit status 3)"]),
        ({"state": "lost", "doing": "ended"}, ["It is lost", "within the lease"]),
        ({"group": None}, ["it takes turns with no other job"]),
        ({}, ["it is in set 1", "its weight is 0.1", "(w_iter) is not known"]),
        (
            {"group": "5", "weight": 1e-05},
            ["1e-05. The", "set of jobs with no history"],
        ),
        ({"w_iter": 12.0, "iterations": 1}, ["w_iter is 12 s, learnt from 1 iteration of this"]),
        ({"w_iter": 12.0}, ["from what is known of its application"]),
        ({"io_nodes": []}, ["It has no I/O nodes"]),
        ({"phases": 2, "phase_bytes": MIB}, ["It had 2 phases, 1 MiB each"]),
        ({"bandwidth": 3.0 * MIB}, ["3 MiB/s"]),
        ({"turn_waited_seconds": 5.0}, ["It waited for turns for 5 s, 5% of its time"]),
        (  # heard of after its end, when nobody knows its mode: it counted what it waited
            {"state": "ended", "status": 0, "mode": None, "counters": {"turn_waited": 5 * 10**9}},
            ["It waited for turns for 5 s"],
        ),
        ({"turn_waited_seconds": 5.0, "mode": "advise"}, ["Enforced, it would have waited"]),
        (
            {"phases": 1, "mode": "observe", "state": "ended", "status": 0, "doing": "ended"},
            ["It was not made to wait, as no job is (mode observe); enforced, it would not have"],
        ),
        ({"phases": 1, "mode": "advise"}, ["(mode advise); enforced, it would not have waited"]),
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
        ({"phases": 1, "mode": "observe", "turn_waited_seconds": 5.0}, "not have waited"),
        (WAITS | {"phases": 1, "mode": "observe"}, "not have waited"),  # it would right now
        ({"phases": 0, "mode": "observe"}, "not have waited"),
        ({"phases": 1, "mode": "off"}, "not have waited"),  # nobody looks then
        ({"phases": 1}, "not have waited"),
        ({"w_iter": 12.0}, "no history"),
    ],
)
def test_what_is_not_so_is_not_said(record: dict[str, Any], unsaid: str) -> None:
    assert unsaid not in page(status(job("x.9", **record)))


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
        ({}, "1 MiB in files that no I/O node can serve"),
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
