"""A controller records which decisions of its allocation policy took too long."""

from pathlib import Path

from live.controller.turn_harness import TurnHarness

from penstock.live.controller.policy_watch import watched
from penstock.live.protocol import messages
from penstock.records import Record, RecordWriter, replay

SLOW = """
import time

from penstock.policies.base import Allocator

class Slow(Allocator):
    needs = frozenset()
    sticky = False

    def allocate(self, view):
        until = time.thread_time() + 0.5 * (len(view.jobs) > 1)
        while time.thread_time() < until:
            pass
        return dict.fromkeys(view.jobs, 1)
"""


def test_a_decision_that_took_too_long_is_replayed_as_it_was(tmp_path: Path) -> None:
    """A replay is not watched: the policy would answer, otherwise than its fallback did."""
    (tmp_path / "slow.py").write_text(SLOW)
    policy = f"{tmp_path / 'slow.py'}:Slow"
    site = TurnHarness(allocation=policy, watch=watched(0.05))
    writer = RecordWriter(tmp_path / "records", site.turn_service.header)
    site.turn_service.record(writer)
    for number in range(4):
        site.turn_service.node_up(messages.Node(number=number, id=number + 1, address="a"))
    site.start("a")
    site.start("b")
    writer.close()
    record = Record(*(tmp_path / "records").iterdir())
    assert [list(entry.late) for entry in record][-2:] == [[], [0]]
    assert replay(record, trusted=[policy]).first_difference is None
