"""The figures carried by the product are those that were published."""

import csv
from collections import Counter

import published_data
import pytest

from penstock.data import COUNTS, g5k_applications, mn4_patterns


def test_the_published_split_of_best_counts_is_that_of_the_maxima() -> None:
    best = Counter(max(COUNTS, key=p.curve("max").bandwidth) for p in mn4_patterns())
    assert best == {0: 62, 1: 12, 2: 83, 4: 15, 8: 17}


def test_there_are_189_patterns_each_with_every_count() -> None:
    assert len(mn4_patterns()) == 189
    assert all(p.curve().counts == COUNTS for p in mn4_patterns())


def test_the_applications_are_those_of_table_5_2() -> None:
    applications = g5k_applications()
    assert list(applications) == [
        "BT-C",
        "BT-D",
        "HACC",
        "IOR-MPI",
        "POSIX-S",
        "POSIX-L",
        "MAD",
        "SIM",
        "S3D",
    ]
    assert applications["BT-D"].volume == 253_000
    assert applications["IOR-MPI"].curve.bandwidth(8) == pytest.approx(5089.9, abs=0.1)


@published_data.either
def test_the_means_are_those_of_the_measurements(*, full: bool) -> None:
    with published_data.path("mn4-means.csv", full=full).open() as file:
        rows = list(csv.DictReader(file))
    layouts, spatialities = ("file-per-process", "shared"), ("contiguous", "1d-strided")
    measured = {
        (
            int(row["clients"]),
            int(row["processes"]),
            layouts[int(row["layout"])],
            spatialities[int(row["spatiality"])],
            int(row["request_kb"]),
            int(row["io_nodes"]),
        ): float(row["bw_mean_mbs"])
        for row in rows
    }
    carried = {
        (p.nodes, p.processes, p.layout, p.spatiality, p.request_kb, n): p.curve().bandwidth(n)
        for p in mn4_patterns()
        for n in COUNTS
    }
    assert len(measured) == (len(carried) if full else 12 * len(COUNTS))
    assert {key: carried[key] for key in measured} == pytest.approx(measured, rel=1e-5)


def test_the_means_of_all_patterns_add_up_to_those_measured() -> None:
    """Sums over the 189 patterns of the measurements' means, MB/s."""
    sums = {n: sum(p.curve().bandwidth(n) for p in mn4_patterns()) for n in COUNTS}
    measured = {0: 241113.3, 1: 37508.2, 2: 72335.6, 4: 123098.6, 8: 207881.2}
    assert sums == pytest.approx(measured, rel=1e-5)
