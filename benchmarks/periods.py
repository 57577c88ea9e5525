"""Periods of real traces: our finder and estimator, sample by sample, against FTIO on whole traces.

    python benchmarks/periods.py [--data FOLDER] [--sample 0.02]

For every trace in FTIO's own examples (PENSTOCK_DATA/ftio-traces): the phases that PhaseFinder
sees in counters sampled as an agent would, the w_iter that Period makes of them, and the period of
FTIO (Fourier transform and autocorrelation) with its confidence. docs/live/phases.md explains those
that differ.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgpack
import numpy as np
from ftio.cli.ftio_core import core
from ftio.parse.args import parse_args
from ftio.parse.bandwidth import overlap
from numpy.typing import NDArray

from penstock.learn.periods import Period
from penstock.learn.phases import Began, Ended, PhaseFinder

DATA = Path(os.environ.get("PENSTOCK_DATA", "data")) / "ftio-traces"
MIB, MB = 2.0**20, 1e6
CONFIDENT = 0.6
"""FTIO calls a period of less confidence than this no period."""
FREQUENCY = 10.0
"""Hertz at which FTIO samples the bandwidth, as its own examples have it."""
CALL = 2**20
"""Bytes a data call, where a trace gives bandwidth over an interval and not its requests."""
SAMPLES = 1_000_000


@dataclass(frozen=True)
class Trace:
    """Transfers, as arrays of starts, ends (seconds) and bytes."""

    name: str
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    moved: NDArray[np.float64]

    @property
    def span(self) -> float:
        return float(self.end.max() - self.start.min())

    def busy(self) -> Trace:
        """Return the trace without transfers that moved nothing: they are idle times."""
        there = self.moved > 0
        return Trace(self.name, self.start[there], self.end[there], self.moved[there])

    def slower(self, factor: float) -> Trace:
        return Trace(
            f"{self.name}, {factor:g} times slower",
            self.start * factor,
            self.end * factor,
            self.moved,
        )


@dataclass(frozen=True)
class Estimate:
    phases: int
    w_iter: float | None
    std: float | None
    gap: float


def of_rates(name: str, rows: dict[str, list[float]], scale: float) -> Trace:
    """Return a trace of TMIO's ranks: bandwidth by transfer."""
    start, end = np.array(rows["t_rank_s"]), np.array(rows["t_rank_e"])
    return Trace(name, start, end, np.array(rows["b_rank_avr"]) * (end - start) * scale)


def of_requests(name: str, rows: dict[str, list[float]]) -> Trace:
    """Return a trace of GekkoFS's requests."""
    start, end = np.array(rows["start_t_micro"]) / 1e6, np.array(rows["end_t_micro"]) / 1e6
    return Trace(name, start, end, np.array(rows["avg_thruput_mib"]) * MIB * (end - start))


def text(path: Path) -> dict[str, list[float]]:
    lists = {}
    for line in path.read_text().splitlines():
        key, _, value = line.partition(":")
        if value.strip().startswith("["):
            lists[key] = [float(x) for x in value.strip(" []").split(",")]
    return lists


def joined(name: str, parts: list[Trace]) -> Trace:
    """Return what several processes, or reads and writes, did together."""
    return Trace(
        name,
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.end for part in parts]),
        np.concatenate([part.moved for part in parts]),
    )


def tmio_text(path: Path, scale: float) -> Trace:
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    kinds = [kind for line in lines for kind in json.loads(line).items()]
    rows = [kind["bandwidth"] for name, kind in kinds if name in {"write_sync", "read_sync"}]
    return joined(path.name, [of_rates("", row, scale) for row in rows if row["t_rank_s"]])


def tmio_packed(path: Path) -> Trace:
    parts = []
    with path.open("rb") as file:
        for record in msgpack.Unpacker(file):
            if record[0] in {"read_sync", "write_sync"} and record[13]:
                moved, start, end = np.array([transfer[:3] for transfer in record[13]]).T
                parts.append(Trace("", start, end, moved))
    return joined(path.name, parts)


def traces(data: Path = DATA) -> Iterator[Trace]:
    """Yield the jobs of all traces, each once."""
    gekko = sorted(data.glob("gekkofs_*.json"))
    each = [of_requests(path.name, json.loads(path.read_text())) for path in gekko]
    yield from each
    yield joined("gekkofs_write, the four nodes as one job", each)
    yield tmio_text(data / "tmio_8.jsonl", MB)
    yield tmio_text(data / "tmio_ior_collective_test.json", MB)
    yield tmio_packed(data / "tmio_ior_384ranks.msgpack")
    yield tmio_text(data / "custom.json", 1.0)
    # FTIO's example reads these microseconds as milliseconds.
    yield of_requests("custom_2.txt", text(data / "custom_2.txt")).slower(1000)
    yield of_requests("custom_4.txt", text(data / "custom_4.txt"))


def calls(trace: Trace) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return when transfers began, and when each data call of them ended, with its bytes."""
    count = np.maximum(np.ceil(trace.moved / CALL), 1).astype(int)
    which = np.repeat(np.arange(len(count)), count)
    part = (np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count) + 1) / count[which]
    ends = trace.start[which] + part * (trace.end - trace.start)[which]
    order = np.argsort(ends, kind="stable")
    return np.sort(trace.start), ends[order], (trace.moved / count)[which][order]


def ours(trace: Trace, sample: float) -> Estimate:
    """Return the result of finder and estimator for counters sampled at an interval."""
    trace = trace.busy()
    starts, ends, sizes = calls(trace)
    moved = np.concatenate([[0.0], np.cumsum(sizes)])
    stops = np.sort(trace.end)
    finder, period, began, phases = PhaseFinder(), Period.live(), 0.0, 0
    first = float(starts[0]) - 1.0
    now, last = first, float(stops[-1]) + 12.0
    for _ in range(SAMPLES):
        done = int(np.searchsorted(ends, now, "right"))
        busy = np.searchsorted(starts, now, "right") > np.searchsorted(stops, now, "right")
        event = finder.sample(
            now,
            busy=bool(busy),
            last_call=float(ends[done - 1]) if done else 0.0,
            moved=int(moved[done]),
            waiting=False,
        )
        if isinstance(event, Began):
            began = event.time
            period.began(began)
        elif isinstance(event, Ended):
            phases += not event.small
            period.ended(event.time, 0.0 if event.small else event.time - began)
        due = now + sample if finder.due is None else min(finder.due, now + sample)
        now = max(due, now + 0.005)
        if now > last:
            break
    return Estimate(phases, period.w_iter_, period.std, finder.gap)


def ftio(trace: Trace) -> tuple[float | None, float]:
    """Return the dominant period that FTIO finds, and its confidence; None: it finds none."""
    if trace.span * FREQUENCY < 8:
        return None, 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rate = trace.moved / (trace.end - trace.start)
        bandwidth, time = overlap(rate, trace.start, trace.end)
        args = parse_args(["-e", "no", "-au", "-f", f"{FREQUENCY:g}"], "ftio")
        data = {
            "time": np.array(time),
            "bandwidth": np.array(bandwidth),
            "total_bytes": int(trace.moved.sum()),
            "ranks": 1,
        }
        prediction, _ = core(data, args)
    estimates = [
        (float(c), 1 / float(f))
        for f, c in zip(prediction.dominant_freq, prediction.conf, strict=True)
        if f > 0 and math.isfinite(c)
    ]
    if not estimates:
        return None, 0.0
    confidence, period = max(estimates)
    return period, confidence


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, default=DATA)
    options.add_argument("--sample", type=float, default=0.02)
    given = options.parse_args()
    if not given.data.is_dir():
        options.error(f"no folder {given.data}; give FTIO's example traces with --data")
    print(
        f"{'trace':<54}{'phases':>7}{'gap s':>7}{'w_iter s':>10}{'std':>7}{'FTIO s':>9}{'conf':>6}"
    )
    for trace in traces(given.data):
        estimate = ours(trace, given.sample)
        period, confidence = ftio(trace)
        shown = "-" if estimate.w_iter is None else f"{estimate.w_iter:.3f}"
        std = "-" if estimate.std is None else f"{estimate.std:.2f}"
        ftio_period = "-" if period is None else f"{period:.3f}"
        print(
            f"{trace.name:<54}{estimate.phases:>7}{estimate.gap:>7.3f}{shown:>10}{std:>7}"
            f"{ftio_period:>9}{confidence:>6.2f}"
        )


if __name__ == "__main__":
    main()
