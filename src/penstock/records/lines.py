"""The lines of a record: a header, then one line per event with the actions that it led to.

The header has the site, the policies, and which part of which run the file is. Of the others each
has an event and its actions, both by name:

{"event":"PhaseBegan","time":3.5,"job":"a","resources":[0],"io":null,"number":7,
 "actions":[{"action":"Admit","job":"a","resource":0,"weight":1.0,"max_share":1.0}]}

The events of a run are numbered from 1, over all its parts, so that a reader notices missing ones.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Protocol

import msgspec
from msgspec import Meta

from penstock import __version__, registry
from penstock.core.arbiter import Arbiter
from penstock.core.explorer import Explorer
from penstock.core.ledger import Ledger
from penstock.core.manager import Manager
from penstock.errors import InputError, unknown
from penstock.learn.periods import Period, Prior
from penstock.model import (
    Action,
    Admit,
    Assign,
    Event,
    Hold,
    Job,
    JobEnded,
    JobId,
    JobsChanged,
    JobStarted,
    NodeDown,
    NodeUp,
    PhaseBegan,
    PhaseEnded,
    Pinned,
    Site,
    View,
    WakeAt,
    Woke,
)
from penstock.policies.base import Placer

FORMAT = "penstock-record"
VERSION = 2
NUMBERED = 2
"""The version from which on events have numbers."""
ENFORCE = "enforce"
"""The mode in which jobs wait for their turns; in all others every phase transfers at once."""
MOST_OBSERVATIONS = 1e9
MOST_EVENTS = 2**53
EVENTS: Mapping[str, msgspec.json.Decoder[Any]] = {
    kind.__name__: msgspec.json.Decoder(kind)
    for kind in (
        *(JobStarted, JobsChanged, JobEnded, PhaseBegan, PhaseEnded),
        *(NodeUp, NodeDown, Pinned, Woke),
    )
}
ACTIONS: Mapping[str, msgspec.json.Decoder[Any]] = {
    kind.__name__: msgspec.json.Decoder(kind) for kind in (Assign, Admit, Hold, WakeAt)
}
RETIRED = frozenset({"Measured", "SetShare", "Tune"})
"""Words of earlier versions that no decision depended on: a reader skips them."""


Source = Literal["live", "emulated", "simulated"]
"""A site; a site whose file system was emulated; a simulation, of which no site was part."""


IMPORTED_OPTIONS = {"judge": "penstock.sim.evaluate.judge:EngineJudge"}
"""Options of policies that name what is imported, with Penstock's own."""


def named_code(policy: str, options: Mapping[str, Any]) -> list[str]:
    """Return what a policy and its options name that runs as code, and is not installed policy."""
    own = [policy] if registry.is_file(policy) else []
    named = {name: value for name, value in options.items() if name in IMPORTED_OPTIONS}
    return own + [str(value) for name, value in named.items() if value != IMPORTED_OPTIONS[name]]


class PolicySpec(msgspec.Struct, frozen=True, kw_only=True):
    """A policy: its name in the registry, or its file, and its options."""

    policy: str
    options: dict[str, Any] = {}

    def make(self, kind: str) -> Any:
        """Return the policy."""
        return registry.policy(kind, self.policy, self.options)


class Arbitration(Protocol):
    """An arbiter, or a host's own around it."""

    def handle(self, event: Event, view: View) -> Sequence[Action]:
        """Return the assignments that follow from an event that is not of a phase."""
        ...

    def begins_io(self, job: JobId) -> None:
        """A job begins an I/O phase."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """Everything needed to make the same Manager for a replay."""

    format: str = FORMAT
    version: int = VERSION
    penstock: str = __version__
    source: Source | None = None
    """What the events are of. None: the record was made before this was recorded."""
    run: str
    """Id of the controller's run; the same in all parts of its record."""
    part: Annotated[int, Meta(ge=1)] = 1
    epoch: Annotated[float, Meta(ge=0, le=1e11)]
    """The time 0 of the events, in seconds since 1970."""
    began: Annotated[float, Meta(ge=0, le=1e12)] = 0.0
    """Start of this part, in the events' seconds."""
    site: Site
    sharing: PolicySpec
    allocation: PolicySpec | None = None
    """None: jobs have their own resources."""
    placement: PolicySpec | None = None
    """None: the allocation also places jobs."""
    fallback: PolicySpec | None = None
    """For jobs of which the allocation knows too little. None: it answers for all, or fails."""
    remap_delay: float = 0.0
    settle: float = 0.0
    """Seconds that such a job runs before other jobs make room for it."""
    explore: bool = False
    """Jobs with the hint `explore` get other counts now and then, to learn their curves."""
    resources_up: bool = True
    """Resources serve before the first NodeUp."""
    learn: dict[str, bool | float] | None = None
    """Options of the estimator of w_iter; None: jobs bring their own. An estimator starts from the
    job's w_iter, weighted by its hint `observations`."""
    fair_users: bool = False
    """Turns alternate between users."""
    scope: str = "file-system"
    """What turns were taken on. With "file-system", resources of phases are file systems, by their
    place in `site.file_systems` (none there: the site has one); with "io-node", I/O nodes by their
    number. In a simulation they are those of the site."""
    mode: str | None = None
    """The site's mode while this part was written: a change begins a new part. None: the record was
    made before modes were recorded."""
    user_modes: dict[str, str] = {}
    """The modes of users that have their own."""
    running: list[JobStarted] = []
    """The jobs that ran at the start of this part."""
    lost: Annotated[int, Meta(ge=0)] = 0
    """Events missing between the part before and this one, because they could not be written."""
    first: Annotated[int, Meta(ge=1, le=MOST_EVENTS)] = 1
    """The number of the first event of this part."""

    @property
    def turn_site(self) -> Site:
        """The site with what turns were taken on as its resources.

        Of a live site with turns per file system and several of them, these.
        """
        several = len(self.site.file_systems)
        if self.scope != "file-system" or several < 2:
            return self.site
        return replace(self.site, resources=several)

    @property
    def numbered(self) -> bool:
        """Whether the events have numbers: those of version 1 had none."""
        return self.version >= NUMBERED

    def manager(self, arbiter: Arbitration | None = None) -> tuple[Manager, Ledger]:
        """Return a new Manager with these policies, and the ledger that is its view.

        A host that reads its arbiter makes it first.
        """
        ledger = Ledger(site=self.site)
        if arbiter is None:
            arbiter = self.arbiter(hears_phases=True)
        manager = Manager(
            sharing=self.sharing.make("sharing"),
            view=ledger,
            learn=None if self.learn is None else self._period,
            arbitrate=None if arbiter is None else arbiter.handle,
            begins_io=None if arbiter is None else arbiter.begins_io,
            fair_users=self.fair_users,
        )
        ledger.attend(manager)
        return manager, ledger

    def code(self) -> list[str]:
        """Return what the policies name that would run as code: files, and what options import."""
        specs = filter(None, (self.sharing, self.allocation, self.placement, self.fallback))
        return [code for spec in specs for code in named_code(spec.policy, spec.options)]

    def _period(self, job: Job) -> Period:
        options: dict[str, Any] = dict(self.learn or {})
        try:
            return Period(prior=_prior(job), **options)
        except TypeError as error:
            raise InputError(f"learn is {self.learn}: {error}") from error

    def arbiter(self, *, of_all: bool = False, hears_phases: bool = False) -> Arbiter | None:
        """Return a new arbiter with these policies, or None if jobs have their own resources.

        `of_all`: it decides as if all jobs were enforced. `hears_phases`: the host calls its
        `begins_io`.
        """
        if self.allocation is None:
            return None
        allocator = self.allocation.make("allocation")
        placer = allocator if self.placement is None else self.placement.make("placement")
        if not isinstance(placer, Placer):
            raise InputError(
                f"allocation {self.allocation.policy!r} does not say where jobs go; "
                "the header must have a placement"
            )
        return Arbiter(
            allocator=allocator,
            placer=placer,
            fallback=None if self.fallback is None else self.fallback.make("allocation"),
            remap_delay=self.remap_delay,
            settle=self.settle,
            explorer=Explorer() if self.explore and not of_all else None,
            all_up=self.resources_up,
            # On a live site Ctrl-C reaches the host in another way.
            catches=(Exception,) if self.resources_up else (Exception, KeyboardInterrupt),
            of_all=of_all,
            hears_phases=hears_phases,
        )


def _prior(job: Job) -> Prior | None:
    """Return the prior that the event itself carries: a replay has no store."""
    if job.w_iter is None:
        return None
    hint = job.hints.get("observations", 1)
    count = int(hint) if isinstance(hint, int | float) and 1 <= hint <= MOST_OBSERVATIONS else 1
    return Prior(w_iter=job.w_iter, observations=count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What happened and what was decided; of a phase that ended `bytes` and `seconds`, if known.

    `seconds`: how long it transferred, its waits left out, as its job measured it. `failed`: the
    policy raised an exception instead.
    """

    event: Event
    actions: Sequence[Action] = ()
    bytes: int | None = None
    seconds: float | None = None
    failed: bool = False
    late: Sequence[int] = ()
    """The arbiter's calls of policies that took too long, by their order: others decided instead. A
    replay repeats that."""
    number: int | None = field(default=None, compare=False)
    """Its number in the run; None: of version 1."""
    where: str = ""
    """File and line, for messages."""


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    event: str
    bytes: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    seconds: float | None = None
    failed: bool = False
    late: list[Annotated[int, Meta(ge=0, le=MOST_EVENTS)]] = []
    number: Annotated[int, Meta(ge=1, le=MOST_EVENTS)] | None = None
    actions: list[msgspec.Raw] = []


class _Action(msgspec.Struct, frozen=True, kw_only=True):
    action: str


_LINE = msgspec.json.Decoder(_Line)
_ACTION = msgspec.json.Decoder(_Action)
_encode = msgspec.json.Encoder().encode


def encode(entry: Entry) -> bytes:
    """Return the line, with its newline."""
    actions = b",".join(_tagged("action", action) for action in entry.actions)
    moved = b"" if entry.bytes is None else b',"bytes":%d' % entry.bytes
    if entry.seconds is not None:
        moved += b',"seconds":' + _encode(entry.seconds)
    if entry.number is not None:
        moved += b',"number":%d' % entry.number
    failed = b',"failed":true' if entry.failed else b""
    if entry.late:
        failed += b',"late":' + _encode(entry.late)
    return _tagged("event", entry.event)[:-1] + moved + failed + b',"actions":[' + actions + b"]}\n"


def _tagged(key: str, thing: Event | Action) -> bytes:
    return f'{{"{key}":"{type(thing).__name__}",'.encode() + _encode(thing)[1:]


def decode(text: bytes) -> Entry | None:
    """Return the entry of a line, None if its event is retired, or raise InputError."""
    try:
        line = _LINE.decode(text)
        if line.event in RETIRED:
            return None
        event = _decoder("event", line.event, EVENTS).decode(text)
        names = [_ACTION.decode(raw).action for raw in line.actions]
        actions = [
            _decoder("action", name, ACTIONS).decode(raw)
            for name, raw in zip(names, line.actions, strict=True)
            if name not in RETIRED
        ]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{_plain(error)}; is the file damaged?") from error
    if not 0 <= event.time < math.inf:
        raise InputError(f"time is {event.time:g}; it must be seconds since the record's epoch")
    return Entry(
        event=event,
        actions=tuple(actions),
        bytes=line.bytes,
        seconds=line.seconds,
        failed=line.failed,
        late=tuple(line.late),
        number=line.number,
    )


def _decoder(
    key: str, name: str, vocabulary: Mapping[str, msgspec.json.Decoder[Any]]
) -> msgspec.json.Decoder[Any]:
    if name not in vocabulary:
        raise unknown(key, name, vocabulary)
    return vocabulary[name]


def _plain(error: Exception) -> str:
    if not isinstance(error, msgspec.DecodeError):
        return "not JSON in UTF-8"
    return " ".join(str(error).replace("`", "").replace("$.", "").split())
