"""Random days of a live controller, for the tests of records and replays."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from penstock import registry
from penstock.core.ledger import KNOWN, decide
from penstock.model import (
    DIRECT_PATH,
    Assign,
    Curve,
    Event,
    Job,
    JobEnded,
    JobStarted,
    NodeDown,
    NodeUp,
    PhaseBegan,
    PhaseEnded,
    Site,
    WakeAt,
    Woke,
)
from penstock.records import Entry, Header, PolicySpec, RecordWriter
from penstock.sim import reference
from penstock.sim.knowledge import Knowledge
from penstock.sim.workload import Workload

RESOURCES = 3
EPOCH = 1_700_000_000.0
LIVE = sorted(n for n in registry.table("sharing") if registry.load("sharing", n).needs <= KNOWN)
"""The sharing policies that a live controller can run."""
CURVE = Curve.of({0: 0.5, 1: 1.0, 2: 1.5, 3: 1.4})


def header(sharing: str = "set-10", **more: object) -> Header:
    site = Site(nodes=100, resources=RESOURCES, direct=True)
    fields = {
        "run": "test",
        "epoch": EPOCH,
        "site": site,
        "sharing": PolicySpec(policy=sharing),
    } | more
    return Header(**fields)  # type: ignore[arg-type]


def arbiters() -> st.SearchStrategy[dict[str, object]]:
    """No arbiter, or one of several kinds, as fields of a header."""
    options = [
        {},
        {
            "allocation": PolicySpec(policy="mckp"),
            "placement": PolicySpec(policy="greedy-clairvoyant"),
        },
        {
            "allocation": PolicySpec(policy="static"),
            "placement": PolicySpec(policy="random", options={"seed": 3}),
            "remap_delay": 2.0,
        },
        {
            "allocation": PolicySpec(policy="one"),
            "placement": PolicySpec(policy="greedy-non-clairvoyant"),
            "remap_delay": 0.5,
        },
    ]
    return st.sampled_from(options)


@st.composite
def days(draw: st.DrawFn) -> list[Event]:
    """Events that a controller may see, ties and clocks that go back included."""
    steps = draw(
        st.lists(
            st.tuples(
                st.integers(0, 9),
                st.integers(0, 20),
                st.sampled_from([0.0, 0.0, 0.5, 1.0, 3.7, 50.0, -0.5]),
            ),
            min_size=5,
            max_size=60,
        )
    )
    return list(_events(steps))


def _events(steps: Sequence[tuple[int, int, float]]) -> Iterator[Event]:
    now, serial = 0.0, 0
    open_parts: dict[str, list[int]] = {}
    for kind, pick, passes in steps:
        now = max(0.0, now + passes)
        idle = [job for job, parts in open_parts.items() if not parts]
        busy = [job for job, parts in open_parts.items() if parts]
        if kind <= 1 or not open_parts:
            job = _job(serial, pick)
            serial += 1
            open_parts[job.id] = []
            yield JobStarted(time=now, job=job)
        elif kind <= 4 and idle:
            name = idle[pick % len(idle)]
            places = tuple(r for r in range(RESOURCES) if (pick + 1) >> r & 1)
            open_parts[name] = list(places) or [DIRECT_PATH]
            io = None if pick % 2 else pick / 3
            yield PhaseBegan(time=now, job=name, resources=places, io=io)
        elif kind <= 7 and busy:
            name = busy[pick % len(busy)]
            place = open_parts[name].pop(pick % len(open_parts[name]))
            yield PhaseEnded(time=now, job=name, resource=place, io=pick / 4, idle=pick % 3 / 8)
        elif kind == 8 and idle:
            name = idle[pick % len(idle)]
            del open_parts[name]
            yield JobEnded(time=now, job=name)
        else:
            yield [
                Woke(time=now),
                NodeDown(time=now, resource=pick % RESOURCES),
                NodeUp(time=now, resource=pick % RESOURCES),
            ][pick % 3]


def _job(serial: int, pick: int) -> Job:
    return Job(
        id=f"j{serial}",
        serial=serial,
        nodes=1 + pick % 4,
        processes=4,
        user="ann",
        executable='a "quoted" name, mit Umlaut: ä',
        w_iter=None if pick % 3 == 0 else 10.0 ** (pick % 4),
        max_share=(1.0, 0.3, 0.5)[pick % 3],
        curve=CURVE,
        volume=10.0,
        compute=100.0,
        hints={"queue": "short", "observations": pick % 5},
    )


class RecordedClock(reference.Clock):
    """A simulation whose Manager and ledger are a controller's, and which keeps a record.

    With `exact` the policies see the simulation's truth instead of what the ledger makes of it.
    """

    def __init__(self, workload: Workload, header: Header, *, exact: bool = False) -> None:
        manager, ledger = header.manager()
        super().__init__(workload, manager.rule.policy, header.site, Knowledge(), None)
        self.ledger = ledger
        self.exact = exact
        if exact:
            ledger.attend(self.manager)
        else:
            self.manager = manager
        self.entries: list[Entry] = []

    def tell(self, event: Event) -> None:
        if self.exact:
            self.entries.append(Entry(event=self.ledger.take(event), actions=()))
            super().tell(event)
            return
        dated, actions = decide(self.manager, self.ledger, event)
        self.entries.append(Entry(event=dated, actions=tuple(actions)))
        self.arrange(action for action in actions if isinstance(action, Assign | WakeAt))
        self.act(actions)


def run(header: Header, events: Sequence[Event]) -> list[Entry]:
    """Return what a controller decides on the events, as a record has it."""
    manager, ledger = header.manager()
    entries = []
    for event in events:
        dated, actions = decide(manager, ledger, event)
        moved = 1000 if isinstance(dated, PhaseEnded) else None
        entries.append(Entry(event=dated, actions=tuple(actions), bytes=moved))
    return entries


def write(directory: Path, header: Header, entries: Sequence[Entry], **options: Any) -> list[Path]:
    """Write a record and return its parts."""
    with RecordWriter(directory, header, flush=0.01, **options) as writer:
        for entry in entries:
            writer.write(entry.event, entry.actions, entry.bytes, seconds=entry.seconds)
    assert writer.lost_total == writer.failed_total == 0
    return sorted(directory.glob(f"*-{header.run}-*.jsonl"))
