"""A record says which decisions of the arbiter failed: a replay gives the same actions."""

from pathlib import Path

import pytest
from records.random_days import header

from penstock.core.ledger import decide
from penstock.model import Event, Job, JobEnded, JobStarted, NodeUp, Site
from penstock.records import PolicySpec, Record, RecordWriter, replay

MOODY = """
from pathlib import Path

from penstock.policies._support.asking import OutOfTime
from penstock.policies.base import Allocator

class Moody(Allocator):
    needs = frozenset()
    sticky = False

    def allocate(self, view):
        if len(view.jobs) > 1 and Path(__file__).with_name("broken").exists():
            raise OutOfTime
        return dict.fromkeys(view.jobs, 2)
"""


@pytest.mark.parametrize("when", ["then", "never", "always"])
def test_a_failure_that_does_not_come_again_is_replayed(tmp_path: Path, when: str) -> None:
    """Its cause, such as a busy machine, is gone when the record is replayed."""
    (tmp_path / "moody.py").write_text(MOODY)
    broken, policy = tmp_path / "broken", f"{tmp_path / 'moody.py'}:Moody"
    made = header(
        "fair-share",
        site=Site(nodes=8, resources=4, direct=True),
        allocation=PolicySpec(policy=policy),
        placement=PolicySpec(policy="greedy-non-clairvoyant"),
        fallback=PolicySpec(policy="one"),
    )
    arbiter = made.arbiter(hears_phases=True)
    assert arbiter is not None
    manager, ledger = made.manager(arbiter)
    writer = RecordWriter(tmp_path / "records", made)
    writer.late = arbiter.calls.take_late
    events: list[Event] = [
        NodeUp(time=0.0, resource=0),
        JobStarted(time=1.0, job=Job(id="a", serial=1)),
        JobStarted(time=2.0, job=Job(id="b", serial=2)),
        JobEnded(time=3.0, job="a"),
        JobEnded(time=4.0, job="b"),
    ]
    if when != "never":
        broken.touch()
    for event in events:
        writer.write(*decide(manager, ledger, event))
    writer.close()
    if when == "then":
        broken.unlink()
    paths = sorted((tmp_path / "records").iterdir())
    faults = [list(entry.late) for entry in Record(*paths)]
    assert faults == [[], [], [] if when == "never" else [0], [], []]
    assert replay(Record(*paths), trusted=[policy]).first_difference is None
