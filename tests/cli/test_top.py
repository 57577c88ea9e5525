"""penstock top: rates come from two looks, and nobody who waits is left unexplained."""

import json
from typing import Any

import pytest
from cli.standing_jobs import MIB, job, node, status
from msgspec import UNSET

from penstock.cli.verbs.top import Sample, View, view
from penstock.live.deployment import launcher
from penstock.live.protocol import messages

TRANSFERS: dict[str, Any] = {"doing": "transferring", "since_seconds": 1.0}
WAITS: dict[str, Any] = {"doing": "waiting", "since_seconds": 2.0, "at_most_seconds": 28.0}


def after(first: messages.Status, second: messages.Status, elapsed: float = 2.0) -> View:
    return view(Sample(status=first, time=10.0), Sample(status=second, time=10.0 + elapsed))


def test_rates_are_what_was_moved_between_the_looks() -> None:
    first = status(job("a.1", forwarded_bytes=5 * MIB, direct_bytes=MIB))
    second = status(
        job("a.1", forwarded_bytes=8 * MIB, direct_bytes=2 * MIB),
        job("new.2", forwarded_bytes=MIB, seconds=1.5),
        job("unseen.3", forwarded_bytes=MIB, seconds=50.0),
    )
    rates = {answer.id: answer.rate for answer in after(first, second).jobs}
    assert rates == {"a.1": 2 * MIB, "new.2": MIB / 2, "unseen.3": None}


def test_an_io_node_that_came_back_has_no_rate_yet() -> None:
    """Its counters began at 0 again: a difference would be of two processes."""
    first = status(io_nodes=[node(0, write_bytes=8 * MIB), node(1, read_bytes=MIB)])
    second = status(io_nodes=[node(0, id=7, write_bytes=MIB), node(1, read_bytes=3 * MIB)])
    assert [answer.rate for answer in after(first, second).io_nodes] == [None, MIB]


def test_who_transfers_comes_by_share_and_who_waits_by_how_long() -> None:
    jobs = [
        job("computes.1"),
        job("short.2", **WAITS | {"since_seconds": 1.0}),
        job("small.3", **TRANSFERS, share=0.1),
        job("long.4", **WAITS | {"since_seconds": 9.0}),
        job("large.5", **TRANSFERS, share=0.9),
        job("observed.6", **WAITS, mode="observe"),
        job("ended.7", state="ended", doing=None),
    ]
    listed = [answer.id for answer in after(status(*jobs), status(*jobs)).jobs]
    assert listed == ["large.5", "small.3", "long.4", "short.2", "observed.6", "computes.1"]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[messages.Status]:
    """What the controller answers, one after the other; then it is gone."""
    answers: list[messages.Status] = []

    def ask(*_: object) -> messages.Status:
        if not answers:
            raise launcher.LaunchError("the controller does not answer")
        return answers.pop(0)

    monkeypatch.setattr("penstock.live.deployment.launcher.ask", ask)
    monkeypatch.setattr("time.sleep", lambda _: None)
    return answers


def test_who_waits_says_for_whom_and_how_long_at_most(penstock: Any, looks: Any) -> None:
    holds = job("a.1", **TRANSFERS, share=1.0)
    waits = job("b.2", **WAITS, behind=["a.1"])
    observed = job("c.3", **WAITS, behind=["a.1", "b.2"], mode="observe")
    looks += [status(holds, waits, observed, modes={"eve": "observe"})] * 2
    out = penstock("top", "--once").out
    head, rows = out.splitlines()[0], {line.split()[0]: line for line in out.splitlines() if line}
    assert "set-10, enforce (eve: observe)" in head
    assert "1 transferring, 1 waiting, 1 would wait" in head
    assert all(text in rows["b.2"] for text in ("waiting", "for a.1", "28 s more"))
    assert all(text in rows["c.3"] for text in ("would wait", "for a.1, behind b.2"))
    assert "more" not in rows["c.3"]  # it does not wait, so that nothing bounds it
    assert "100%" in rows["a.1"]


def test_shares_granted_and_received_and_the_total_are_shown(penstock: Any, looks: Any) -> None:
    """A job with a share of 0% moved half of all bytes: that looked like a fault."""
    jobs = [
        job("a.1", **TRANSFERS, share=0.97, received=0.5, user="ann", forwarded_bytes=MIB),
        job("b.2", **TRANSFERS, share=0.03, received=None, user="ann", forwarded_bytes=MIB),
    ]
    looks += [status(*jobs, bandwidth=100.0 * MIB)] * 2
    out = penstock("top", "--once").out
    heads = next(line.split() for line in out.splitlines() if line.startswith("job"))
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line}
    assert heads[:7] == ["job", "user", "activity", "since", "granted", "received", "MiB/s"]
    assert rows["a.1"][1] == "ann"
    assert "97% 50%" in " ".join(rows["a.1"])
    assert "3% -" in " ".join(rows["b.2"])
    assert "all jobs: 0 MiB/s, 0% of 100 MiB/s" in out
    assert "last reported" not in out


def test_the_total_is_the_sum_over_jobs_also_those_that_ended_meanwhile() -> None:
    first = status(job("a.1"), job("b.2"), io_nodes=[])
    second = status(
        job("a.1", direct_bytes=MIB),
        job("b.2", state="ended", direct_bytes=3 * MIB),
        io_nodes=[],
    )
    assert after(first, second).rate == 2 * MIB


def test_the_total_is_what_the_io_nodes_measured_and_what_went_direct() -> None:
    """Jobs report once per second: their sum showed a third of what the I/O nodes moved."""
    first = status(job("a.1"), io_nodes=[node(0, write_bytes=MIB), node(1)])
    second = status(
        job("a.1", forwarded_bytes=MIB, direct_bytes=2 * MIB),
        io_nodes=[node(0, write_bytes=6 * MIB), node(1, read_bytes=3 * MIB)],
    )
    seen = after(first, second)
    assert (seen.rate, seen.reported_rate) == (5 * MIB, MIB)


def test_an_io_node_that_is_down_adds_nothing_to_the_total() -> None:
    down = node(1, id=None, state="down", read_bytes=UNSET, write_bytes=UNSET)
    first = status(job("a.1"), io_nodes=[node(0), down])
    second = status(job("a.1"), io_nodes=[node(0, write_bytes=4 * MIB), down])
    assert (after(first, second).rate, after(first, second).reported_rate) == (2 * MIB, 0)


def test_the_total_says_which_part_of_it_jobs_reported(penstock: Any, looks: Any) -> None:
    served = [node(0, write_bytes=MIB)]
    looks += [status(job("a.1")), status(job("a.1", direct_bytes=MIB), io_nodes=served)]
    assert "of it direct, as jobs last reported)" in penstock("top", "--once").out
    looks += [status(job("a.1"), io_nodes=[]), status(job("a.1", direct_bytes=MIB), io_nodes=[])]
    assert "/s (as jobs last reported)" in penstock("top", "--once").out


@pytest.mark.parametrize("silent", ["before", "after"])
def test_without_the_figures_of_an_io_node_the_total_is_of_what_jobs_reported(
    penstock: Any, looks: Any, silent: str
) -> None:
    """An I/O node that did not answer had no rate of 0, nor moved all its bytes since."""
    unknown = node(0, state="not answering", read_bytes=UNSET, write_bytes=UNSET)
    known = node(0, write_bytes=900 * MIB)
    nodes = [unknown, known] if silent == "before" else [known, unknown]
    samples = [status(job("a.1", forwarded_bytes=k * 2 * MIB), io_nodes=[nodes[k]]) for k in (0, 1)]
    seen = after(samples[0], samples[1])
    assert [answer.rate for answer in seen.io_nodes] == [None]
    assert (seen.rate, seen.reported_rate) == (MIB, MIB)
    looks += samples
    assert "(as jobs last reported)" in penstock("top", "--once").out


def test_a_log_gets_one_table_an_interval_until_the_controller_is_gone(
    penstock: Any, looks: Any
) -> None:
    looks += [status(job("a.1"))] * 4
    result = penstock("top")
    assert (result.status, result.out.count("a.1")) == (1, 3)
    assert "does not answer" in result.err


def test_json_is_one_look_or_a_line_each(penstock: Any, looks: Any) -> None:
    looks += [status(job("a.1", **TRANSFERS, share=1.0))] * 2
    assert penstock("top", "--once", "--json").json["jobs"][0]["share"] == 1.0
    looks += [status()] * 3
    lines = penstock("top", "--json").out.splitlines()
    assert [json.loads(line)["jobs"] for line in lines] == [[], []]


def test_ctrl_c_is_how_it_ends(penstock: Any, monkeypatch: pytest.MonkeyPatch, looks: Any) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    looks += [status()]
    monkeypatch.setattr("time.sleep", interrupted)
    assert penstock("top")[0] == 0


def test_jobs_of_an_older_version_are_listed(penstock: Any, looks: Any) -> None:
    looks += [status(job("old.1", doing=None, mode=None))] * 2
    assert "no turns" in penstock("top", "--once").out


@pytest.mark.parametrize("interval", ["0.01 s", "soon", "-1"])
def test_wrong_intervals(penstock: Any, interval: str) -> None:
    result = penstock("top", "--interval", interval)
    assert (result.status, "--interval" in result.err) == (2, True)
