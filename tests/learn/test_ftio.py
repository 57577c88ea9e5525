"""Our online periods against FTIO's over whole traces: its own examples."""

import importlib.util
import sys
import warnings
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
TRACES = ROOT.parent / "shared" / "data" / "ftio-traces"
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


@pytest.mark.slow
@pytest.mark.skipif(not TRACES.is_dir(), reason="the measured data is not beside the checkout")
def test_we_agree_with_ftio_where_it_is_sure(periods: ModuleType) -> None:
    """Within 3%, or half a bin of its transform where that is wider: a short trace has few bins."""
    sure = []
    for trace in periods.traces(TRACES):
        period, confidence = periods.ftio(trace)
        found = periods.ours(trace, sample=0.02)
        print(f"{trace.name}: w_iter {found.w_iter}, FTIO {period} (confidence {confidence:.2f})")
        if period is None or confidence < periods.CONFIDENT:
            continue
        sure.append(trace.name)
        cycle = found.w_iter * (2 if trace.name == TWO_PHASES else 1)
        bin_of_transform = period / trace.span
        assert cycle == pytest.approx(period, rel=max(0.03, bin_of_transform / 2)), trace.name
    assert len(sure) >= 8


@pytest.mark.slow
@pytest.mark.skipif(not TRACES.is_dir(), reason="the measured data is not beside the checkout")
@pytest.mark.parametrize("sample", [0.01, 0.1])
def test_how_often_counters_are_sampled_matters_little(periods: ModuleType, sample: float) -> None:
    """Ten checkpoints, and fifteen iterations with less than 0.1 s between them."""
    expected = {NODES: 10, "tmio_8.jsonl": 15, "custom.json": 8, "custom_4.txt": 1}
    found = {
        trace.name: periods.ours(trace, sample).phases
        for trace in periods.traces(TRACES)
        if trace.name in expected
    }
    assert found == expected
