"""How a write should be made: the best of its candidates by a model, and what that would gain.

Paper write-models, IV-D, and beyond it: the paper leaves out what it costs to bring data to the
aggregators. Here they come through each aggregator's own port, before anything is written, so that
it takes (bytes of an aggregating node - its own) over the bandwidth of a compute node, where the
machine's description or the caller knows one.

With a measured time t of the write as it is, t' what the model says of that and t'' of the
candidate, the error e = t' - t is taken to stay: the candidate should take t'' - e, and the gain is
t / (t'' - e) (the paper prints these inverted). Without a measurement it is t' / t''; and with one
that is outside of what the model holds to be possible, because an error of that size is none that
would stay.

What is advised has to be had: candidates are those that a library can be told of (`attainable`).

A model errs most where it has seen least, and the best of many candidates is likely one where it
errs in our favour. So candidates that the model calls outside, and is less sure of than of the
write itself, do not count; and the gain has an interval: that of two errors that know nothing of
each other. Below 1 at its lower end the advice may make things worse, and says so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import InputError
from penstock.learn.write_models.attainable import attainable
from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.parameters import bandwidth
from penstock.learn.write_models.prediction import Prediction, WriteModel
from penstock.model.write import Write

WORTH = 1.05
"""Gains below this are no reason to change anything."""
SLIGHTLY = 1.02
"""Times the best time: a way that leaves the writers as they are may take so much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """How many times as fast."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A way to write, what a model says of it, and the seconds that data need to get there."""

    write: Write
    prediction: Prediction
    moving: float = 0.0

    @property
    def seconds(self) -> float:
        """Return all that it takes."""
        return self.prediction.seconds + self.moving


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The write as it is, the best way found, and the gain."""

    now: Choice
    best: Choice
    gain: Gain
    tried: int
    left_out: int
    """Candidates that did not count, because the model has not seen their like."""
    moves_counted: bool
    """Whether the way to the aggregators is in the seconds."""
    measured: float | None = None

    @property
    def worth_it(self) -> bool:
        """Say whether anything should be changed."""
        return self.best.write != self.now.write and self.gain.expected >= WORTH

    @property
    def may_be_slower(self) -> bool:
        """Say whether the advised way may be slower than the present one."""
        return self.worth_it and self.gain.low < 1

    @property
    def contradicted(self) -> bool:
        """Say whether what was measured is outside of what the model says of it."""
        return self.measured is not None and not _within(self.measured, self.now.prediction)

    def then(self) -> tuple[float, float, float]:
        """Return what the write should take if the advice is taken, and between which limits."""
        if not self.worth_it:
            told = self.now.prediction
            known = self.measured
            return (told.seconds, told.low, told.high) if known is None else (known, known, known)
        if self.measured is None:
            told, moving = self.best.prediction, self.best.moving
            return told.seconds + moving, told.low + moving, told.high + moving
        gain = self.gain
        slowest = self.measured / gain.low if gain.low else math.inf
        return self.measured / gain.expected, self.measured / gain.high, slowest


def advise(
    model: WriteModel,
    write: Write,
    *,
    measured: float | None = None,
    gather: float | None = None,
    aggregators: bool = True,
    hosts: Sequence[str] = (),
) -> Advice:
    """Return the best way to do a write.

    `gather` is bytes a second into an aggregating node; `hosts` are the names of the job's nodes in
    their order, without which nobody can choose among them.
    """
    if measured is not None and not 0 < measured < math.inf:
        raise InputError(f"a measured time of {measured:g} s; give more than zero")
    if gather is not None and not 0 < gather < math.inf:
        raise InputError(f"a bandwidth of {gather:g} B/s to aggregators; give more than zero")
    machine = model.machine
    pace = _port(machine) if gather is None else gather
    now = best = plainest = Choice(write=write, prediction=model.predict(write))
    tried = left_out = 0
    for other in attainable(machine, write, aggregators=aggregators, hosts=hosts):
        choice = Choice(
            write=other, prediction=model.predict(other), moving=_moving(write, other, pace)
        )
        tried += 1
        if _stranger(choice.prediction, now.prediction):
            left_out += 1
            continue
        best = min(best, choice, key=lambda one: one.seconds)
        if other.bursts == write.bursts:
            plainest = min(plainest, choice, key=lambda one: one.seconds)
    if plainest.seconds <= best.seconds * SLIGHTLY:
        best = plainest
    return Advice(
        now=now,
        best=best,
        gain=gain(now, best, measured),
        tried=tried,
        left_out=left_out,
        moves_counted=pace is not None,
        measured=measured,
    )


def _stranger(one: Prediction, known: Prediction) -> bool:
    """Say whether a model has seen less of a write's like than of a known one's."""
    if not one.outside:
        return False
    return one.high * known.low > known.high * one.low * (1 + 1e-9)


def gain(now: Choice, best: Choice, measured: float | None = None) -> Gain:
    """Return how many times as fast the better way is, and between which limits."""
    if now.write == best.write:
        return Gain(expected=1.0, low=1.0, high=1.0)
    if measured is not None and _within(measured, now.prediction):
        error = now.prediction.seconds - measured
        if best.seconds > error:
            # That the error stays is an assumption: what it would be without is in the interval.
            slowest = best.prediction.high + best.moving - min(error, 0.0)
            fastest = best.prediction.low + best.moving - max(error, 0.0)
            return Gain(
                expected=measured / (best.seconds - error),
                low=measured / slowest,
                high=measured / fastest if fastest > 0 else math.inf,
            )
        # An error larger than the candidate's whole time cannot stay: what stays is its ratio.
    ratio = now.seconds / best.seconds
    slower = math.hypot(_above(now, down=True), _above(best, down=False))
    faster = math.hypot(_above(now, down=False), _above(best, down=True))
    return Gain(expected=ratio, low=ratio * math.exp(-slower), high=ratio * math.exp(faster))


def _within(measured: float, told: Prediction) -> bool:
    return told.low <= measured <= told.high


def _above(choice: Choice, *, down: bool) -> float:
    """Return how far, as a logarithm, a limit of a choice is from what is expected."""
    limit = choice.prediction.low if down else choice.prediction.high
    if limit <= 0:
        return math.inf
    return abs(math.log((limit + choice.moving) / choice.seconds))


def _port(machine: Machine) -> float | None:
    node = machine.one("node")
    return (bandwidth(node) or None) if node is not None else None


def _moving(write: Write, other: Write, pace: float | None) -> float:
    """Return the seconds until the aggregators have everything."""
    if pace is None:
        return 0.0
    return max(0.0, write.bytes / other.nodes - write.cores * write.burst) / pace
