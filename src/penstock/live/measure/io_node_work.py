"""What I/O nodes did in a run, by their own counters."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from penstock.live.measure.rank import RankResult
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class IoNodeWork:
    """What an I/O node did in a run, by its own counters."""

    io_node: int
    ranks: int
    reads: int
    writes: int
    read_bytes: int
    write_bytes: int
    batches: int
    aggregated: int
    """Requests served together with others."""
    host: str = ""


def counters(controls: Iterable[Path]) -> dict[int, messages.NodeCounters]:
    """Return the counters of all I/O nodes that answer, by number."""
    answers = {}
    for control in controls:
        # One that is down serves nobody, and the run's own counters say so.
        with suppress(OSError), ControlConnection(control) as node:
            answer = node.ask(messages.GetCounters(), messages.NodeCounters)
            answers[answer.number] = answer
    return answers


def users(ranks: Iterable[RankResult]) -> Counter[int]:
    """Return how many ranks used each I/O node."""
    return Counter(number for one in ranks for number in one.io_nodes)


def io_node_work(
    used: Mapping[int, int],
    before: Mapping[int, messages.NodeCounters],
    after: Mapping[int, messages.NodeCounters],
    reads_to_connect: Mapping[int, int],
    host_of: Callable[[int], str],
) -> list[IoNodeWork]:
    """Return what each I/O node that served ranks did between two readings of its counters."""
    work = []
    for number in before.keys() & after.keys():
        old, new = before[number], after[number]
        # One that was restarted meanwhile has counted from zero again.
        if (count := used.get(number, 0)) and old.node == new.node:
            names = ("reads", "writes", "read_bytes", "write_bytes", "batches", "aggregated")
            moved = {name: getattr(new, name) - getattr(old, name) for name in names}
            for name in ("reads", "batches"):
                moved[name] -= reads_to_connect.get(number, 0)
            host = host_of(number)
            work.append(IoNodeWork(io_node=number, ranks=count, host=host, **moved))
    return sorted(work, key=lambda one: one.io_node)
