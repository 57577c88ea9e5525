"""How a write should be made: the best candidate by a model, its gain, and the commands for it.

Paper write-models, IV-D. The paper leaves out the cost of bringing data to the aggregators. Here it
counts: data pass through each aggregator's own port before anything is written, which takes (bytes
of an aggregating node - its own) over the bandwidth of a compute node, where the machine's
description or the caller gives one.

With a measured time t of the write as it is, t' the model's prediction of it and t'' that of the
candidate, the error e = t' - t is assumed to stay: the candidate should take t'' - e, and the gain
is t / (t'' - e) (the paper prints these inverted). The gain is t' / t'' without a measurement, and
also with one outside the model's interval, because an error of that size would not stay.

Only candidates that a library can realise are advised (`attainable_candidates`).

A model errs most where it has the fewest samples, and the best of many candidates is likely one
where it errs in our favour. Therefore candidates that the model calls outside, and is less sure of
than of the write itself, do not count; and the gain has an interval: that of two independent
errors. If its lower end is below 1 the advice may make things worse, and says so.

Settings. Hints are ROMIO's, which MPICH, Cray MPICH, Intel MPI and (as a component) Open MPI have.
They apply to one file that processes share: collective buffering. MPI-IO cannot aggregate one file
per process; ADIOS2's file engines can, into one subfile per aggregator. Cray's own variable cannot
hold a cb_config_list, and without one Cray places aggregators by its own rules, so that it gets
stripes alone.
"""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import InputError
from penstock.learn.write_models.candidates import (
    MIB,
    attainable_candidates,
    config_list,
    on_lustre,
)
from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.parameters import bandwidth, stripe, width
from penstock.learn.write_models.prediction import Prediction, WriteModel
from penstock.model.write import Write

LEAST_GAIN = 1.05
"""A smaller gain is no reason to change anything."""
SLIGHTLY = 1.02
"""A way that keeps the writers is preferred up to this many times the best time."""
BUFFER = 16 * MIB
"""ROMIO's own cb_buffer_size, rounded to whole stripes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """The speedup, and its interval."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A way to write, its prediction, and the seconds to bring data to the aggregators."""

    write: Write
    prediction: Prediction
    moving: float = 0.0

    @property
    def seconds(self) -> float:
        """Return the total time."""
        return self.prediction.seconds + self.moving


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The write as it is, the best candidate, and the gain."""

    now: Choice
    best: Choice
    gain: Gain
    candidates: int
    rejected: int
    """Candidates that did not count, because the model has no samples like them."""
    moves_counted: bool
    """True if the time to bring data to the aggregators is counted."""
    measured: float | None = None

    @property
    def worth_it(self) -> bool:
        """Return True if a change is advised."""
        return self.best.write != self.now.write and self.gain.expected >= LEAST_GAIN

    @property
    def may_be_slower(self) -> bool:
        """Return True if the advised way may be slower than the present one."""
        return self.worth_it and self.gain.low < 1

    @property
    def contradicted(self) -> bool:
        """Return True if the measured time is outside the model's interval."""
        return self.measured is not None and not _within(self.measured, self.now.prediction)

    def outcome(self) -> tuple[float, float, float]:
        """Return the expected time with the advice, and its limits."""
        if not self.worth_it:
            now, t = self.now.prediction, self.measured
            return (now.seconds, now.low, now.high) if t is None else (t, t, t)
        if self.measured is None:
            best, moving = self.best.prediction, self.best.moving
            return best.seconds + moving, best.low + moving, best.high + moving
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

    `gather` is bytes per second into an aggregating node; `hosts` are the names of the job's nodes
    in their order, without which aggregators cannot be placed by name.
    """
    if measured is not None and not 0 < measured < math.inf:
        raise InputError(f"a measured time of {measured:g} s; give more than zero")
    if gather is not None and not 0 < gather < math.inf:
        raise InputError(f"a bandwidth of {gather:g} B/s to aggregators; give more than zero")
    machine = model.machine
    port = _port(machine) if gather is None else gather
    now = best = same_writers = Choice(write=write, prediction=model.predict(write))
    count = rejected = 0
    for other in attainable_candidates(machine, write, aggregators=aggregators, hosts=hosts):
        choice = Choice(
            write=other, prediction=model.predict(other), moving=_moving(write, other, port)
        )
        count += 1
        if _less_sure(choice.prediction, now.prediction):
            rejected += 1
            continue
        best = min(best, choice, key=lambda one: one.seconds)
        if other.bursts == write.bursts:
            same_writers = min(same_writers, choice, key=lambda one: one.seconds)
    if same_writers.seconds <= best.seconds * SLIGHTLY:
        best = same_writers
    return Advice(
        now=now,
        best=best,
        gain=gain(now, best, measured),
        candidates=count,
        rejected=rejected,
        moves_counted=port is not None,
        measured=measured,
    )


def _less_sure(one: Prediction, reference: Prediction) -> bool:
    """Return True if a prediction is outside, with a wider interval than the reference."""
    if not one.outside:
        return False
    return one.high * reference.low > reference.high * one.low * (1 + 1e-9)


def gain(now: Choice, best: Choice, measured: float | None = None) -> Gain:
    """Return the speedup of `best` over `now`, and its limits."""
    if now.write == best.write:
        return Gain(expected=1.0, low=1.0, high=1.0)
    if measured is not None and _within(measured, now.prediction):
        error = now.prediction.seconds - measured
        if best.seconds > error:
            # That the error stays is an assumption: the interval covers the case that it does not.
            slowest = best.prediction.high + best.moving - min(error, 0.0)
            fastest = best.prediction.low + best.moving - max(error, 0.0)
            return Gain(
                expected=measured / (best.seconds - error),
                low=measured / slowest,
                high=measured / fastest if fastest > 0 else math.inf,
            )
        # An error larger than the candidate's whole time cannot stay; its ratio can.
    ratio = now.seconds / best.seconds
    slower = math.hypot(_log_distance(now, down=True), _log_distance(best, down=False))
    faster = math.hypot(_log_distance(now, down=False), _log_distance(best, down=True))
    return Gain(expected=ratio, low=ratio * math.exp(-slower), high=ratio * math.exp(faster))


def _within(measured: float, prediction: Prediction) -> bool:
    return prediction.low <= measured <= prediction.high


def _log_distance(choice: Choice, *, down: bool) -> float:
    """Return the distance of a choice's limit from its expected time, as a logarithm."""
    limit = choice.prediction.low if down else choice.prediction.high
    if limit <= 0:
        return math.inf
    return abs(math.log((limit + choice.moving) / choice.seconds))


def _port(machine: Machine) -> float | None:
    node = machine.one("node")
    return (bandwidth(node) or None) if node is not None else None


def _moving(write: Write, other: Write, port: float | None) -> float:
    """Return the seconds until the aggregators have all data."""
    if port is None:
        return 0.0
    return max(0.0, write.bytes / other.nodes - write.cores * write.burst) / port


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Commands in their order, MPI-IO hints by name, and the equivalent ADIOS2 parameter."""

    commands: tuple[str, ...]
    hints: dict[str, str]
    adios2: dict[str, str]

    def hints_file(self) -> str:
        """Return the hints as ROMIO reads them from the file that ROMIO_HINTS names."""
        return "".join(f"{name} {value}\n" for name, value in self.hints.items())


def settings(
    machine: Machine,
    advice: Advice,
    path: str,
    *,
    hints_file: Path | None = None,
    hosts: Sequence[str] = (),
) -> Settings:
    """Return what makes a program write as advised, with its output at or below `path`.

    `hints_file` is where the hints will be stored, if anywhere; `hosts` as given to `advise`.
    """
    if not advice.worth_it:
        return Settings(commands=(), hints={}, adios2={})
    now, best = advice.now.write, advice.best.write
    commands: list[str] = []
    hints: dict[str, str] = {}
    adios2: dict[str, str] = {}
    restriped = (best.stripe_count, best.stripe_size) != (now.stripe_count, now.stripe_size)
    if restriped and machine.striping.set_by:
        if not best.shared:  # files inherit the stripes of their directory, which must exist
            commands.append(f"mkdir -p {shlex.quote(path)}")
        commands.append(_stripe_command(machine, best, path))
    if best.bursts != now.bursts and best.shared:
        hints |= _collective(machine, now, best, hosts)
    elif best.bursts != now.bursts:
        adios2["NumAggregators"] = f"{best.bursts}"
    if restriped and best.shared:
        hints |= {
            "striping_factor": f"{width(machine, best)}",
            "striping_unit": f"{int(stripe(machine, best))}",
        }
    if hints and hints_file is not None:
        commands.append(f"export ROMIO_HINTS={shlex.quote(str(hints_file.absolute()))}")
    if hints and "cb_nodes" not in hints:
        cray = ":".join(f"{name}={value}" for name, value in hints.items())
        commands.append(f"export MPICH_MPIIO_HINTS='*:{cray}'")
    return Settings(commands=tuple(commands), hints=hints, adios2=adios2)


def _collective(machine: Machine, now: Write, best: Write, hosts: Sequence[str]) -> dict[str, str]:
    """Return the hints that make ROMIO use the advised aggregators."""
    unit, count = int(stripe(machine, best)), width(machine, best)
    hints = {
        "romio_cb_write": "enable",
        "cb_nodes": f"{best.bursts}",
        "cb_config_list": config_list(now, best, hosts),
        "cb_buffer_size": f"{unit * max(1, BUFFER // unit)}",
    }
    if on_lustre(machine) and best.bursts > count:
        # Otherwise only one aggregator writes to each target.
        hints["romio_lustre_co_ratio"] = f"{best.bursts // count}"
    return hints


def _stripe_command(machine: Machine, write: Write, path: str) -> str:
    words = {
        "{count}": f"{width(machine, write)}",
        "{size}": size_word(stripe(machine, write)),
        "{path}": shlex.quote(path),
    }
    command = machine.striping.set_by
    for place, word in words.items():
        command = command.replace(place, word)
    return command


def size_word(size: float) -> str:
    """Return bytes as file systems' commands accept them: 4M, or a plain number."""
    return f"{int(size // MIB)}M" if size % MIB == 0 else f"{int(size)}"
