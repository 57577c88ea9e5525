"""Our online periods against FTIO's over whole traces: its own examples."""

import csv
import importlib.util
import sys
import warnings
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import published_data
import pytest

ROOT = Path(__file__).parents[2]
NODES = "gekkofs_write, the four nodes as one job"
TWO_PHASES = "tmio_ior_384ranks.msgpack"
"""Writes, pauses, reads, pauses: FTIO's period is that of the cycle, w_iter that of a phase."""


@pytest.fixture(scope="module")
def periods() -> ModuleType:
    pytest.importorskip("ftio", reason="FTIO (ftio-hpc) is not installed")
    spec = importlib.util.spec_from_file_location("periods", ROOT / "benchmarks" / "periods.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec.loader.exec_module(module)
    return module


def traces(periods: ModuleType, *, full: bool) -> Iterator[Any]:
    """Yield the transfers of each trace; those carried here are bursts of them."""
    if full:
        yield from periods.traces(Path(published_data.FULL or "", "ftio-traces"))
        return
    with (published_data.TABLES / "ftio-bursts.csv").open() as file:
        for name, rows in groupby(csv.DictReader(file), lambda row: row["trace"]):
            figures = [tuple(map(float, list(row.values())[1:])) for row in rows]
            yield periods.Trace(name, *np.array(figures).T)


def published(name: str) -> tuple[float, float | None, float]:
    """Return the span of a whole trace, and the period that FTIO finds in it, with confidence."""
    with (published_data.TABLES / "ftio-periods.csv").open() as file:
        (row,) = [row for row in csv.DictReader(file) if row["trace"] == name]
    period = float(row["period_s"]) if row["period_s"] else None
    return float(row["span_s"]), period, float(row["confidence"])


@pytest.mark.slow
@published_data.either
def test_we_agree_with_ftio_where_it_is_sure(periods: ModuleType, *, full: bool) -> None:
    """Within 3%, or half a bin of its transform where that is wider: a short trace has few bins."""
    sure = []
    for trace in traces(periods, full=full):
        span, period, confidence = (
            (trace.span, *periods.ftio(trace)) if full else published(trace.name)
        )
        estimate = periods.ours(trace, sample=0.02)
        print(
            f"{trace.name}: w_iter {estimate.w_iter}, FTIO {period} (confidence {confidence:.2f})"
        )
        if period is None or confidence < periods.CONFIDENT:
            continue
        sure.append(trace.name)
        cycle = estimate.w_iter * (2 if trace.name == TWO_PHASES else 1)
        bin_of_transform = period / span
        assert cycle == pytest.approx(period, rel=max(0.03, bin_of_transform / 2)), trace.name
    assert len(sure) >= 8


def test_ftio_finds_a_period_in_bursts(periods: ModuleType) -> None:
    """Ten checkpoints, 50 s apart: FTIO itself is run, on what is carried here."""
    trace = next(traces(periods, full=False))
    period, confidence = periods.ftio(trace)
    assert confidence >= periods.CONFIDENT
    assert period == pytest.approx(published(trace.name)[1], rel=0.01)


@pytest.mark.slow
@published_data.either
@pytest.mark.parametrize("sample", [0.01, 0.1])
def test_how_often_counters_are_sampled_matters_little(
    periods: ModuleType, sample: float, *, full: bool
) -> None:
    """Ten checkpoints, and fifteen iterations with less than 0.1 s between them."""
    expected = {NODES: 10, "tmio_8.jsonl": 15, "custom.json": 8, "custom_4.txt": 1}
    w_iters = {
        trace.name: periods.ours(trace, sample).phases
        for trace in traces(periods, full=full)
        if trace.name in expected
    }
    assert w_iters == expected
