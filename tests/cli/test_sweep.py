"""penstock sweep: the figures of compare, at every point of a generator's parameters."""

from pathlib import Path
from typing import Any

import pytest

SMALL = ("--over", "jobs=6", "--over", "horizon=300", "--seeds", "2")


def test_every_combination_has_compare_s_figures(penstock: Any) -> None:
    given = ("--over", "omega=0.4,0.8", "--over", "noise=0:0.2:0.1", *SMALL)
    result = penstock("sweep", "io-sets", *given, "--json").json
    assert [tuple(point["parameters"].values())[:2] for point in result["points"]] == [
        (omega, noise) for omega in (0.4, 0.8) for noise in (0, 0.1, 0.2)
    ]
    assert (result["base"], result["seeds"], result["metric"]) == ("fair-share", 2, "utilization")
    assert set(result["points"][0]["policies"]) == {"fair-share", "set-10"}
    options = ("--jobs", "6", "--horizon", "300", "--omega", "0.8", "--noise", "0.1")
    penstock("generate", "io-sets", *options, "--out", "w.json")
    alone = ("--policies", "fair-share,set-10", "--seeds", "2", "--json")
    compared = penstock("compare", "w.json", *alone).json
    assert result["points"][4]["policies"] == compared["policies"]
    assert result["points"][4]["choice"] == compared["choice"]


def test_people_read_gains_by_point(penstock: Any, directory: Path) -> None:
    given = ("--over", "n_h=2:4:2", "--over", "n_m=2", "--over", "n_l=0", "--over", "horizon=300")
    chosen = ("--policies", "exclusive-fcfs,set-10", "--metric", "max_stretch", "--plot", "s.svg")
    out = penstock("sweep", "io-sets", *given, *chosen, "--seeds", "2", "--out", "kept").out
    assert "max stretch of exclusive-fcfs, and the gain of others over it" in out
    assert "n_h" in out
    assert "n_m 2" in out
    assert "set-10: of 2 points, the interval is above zero at" in out
    assert "\nsimulated: knowledge exact, an ideal site\n" in out
    assert (directory / "s.svg").read_bytes().startswith(b"<?xml")
    assert len((directory / "kept" / "cells.jsonl").read_text().splitlines()) == 1 + 2 * 2 * 2


def test_one_point_with_one_workload(penstock: Any) -> None:
    given = ("--over", "jobs=6", "--over", "horizon=300", "--seeds", "1", "--knowledge", "learned")
    out = penstock("sweep", "io-sets", *given).out
    assert "1 workload per point" in out
    assert "of 1 point, the interval" in out
    result = penstock("sweep", "io-sets", *given, "--json").json
    assert (result["knowledge"], result["as_live"]) == ("learned", None)


def test_allocators_and_packers_over_their_own_generators(penstock: Any) -> None:
    site = ("--set", "site.resources=20", "--set", "site.nodes=480", "--seeds", "1", "--json")
    given = ("--over", "theta=0.2,0.4", "--over", "jobs=10", "--allocation", "one,n-sys")
    result = penstock("sweep", "io-resources", *given, *site).json
    assert (result["kind"], result["base"], len(result["points"])) == ("allocation", "one", 2)
    given = ("--over", "alpha=2", "--over", "jobs=5", "--packing", "first-fit,no-barriers")
    nodes = ("--set", "site.nodes=2048", "--seeds", "1", "--json")
    result = penstock("sweep", "packs", *given, *nodes).json
    assert (result["kind"], result["base"], result["metric"]) == (
        "packing",
        "first-fit",
        "makespan",
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("io-set", "--over", "omega=1"), "did you mean 'io-sets'"),
        (("io-sets", "--over", "omegas=1"), "did you mean 'omega'"),
        (("io-sets", "--over", "omega"), "not of the form NAME=VALUES"),
        (("io-sets", "--over", "omega=a,b"), "give numbers"),
        (("io-sets", "--over", "omega=0:1"), "give numbers"),
        (("io-sets", "--over", "omega=0:1:0"), "positive STEP"),
        (("io-sets", "--over", "omega=0:1:1e-9"), "at most 1000 values"),
        (("io-sets", "--over", "omega=0.1:1:0.01", "--over", "jobs=1:99:1"), "more than 1000"),
        (("io-sets", "--over", "omega=nan"), "give numbers"),
        (("packs", "--over", "loads=1"), "it is no number; 'penstock generate' sets it"),
        (("io-sets", "--over", "omega=1", "--over", "omega=2"), "names omega twice"),
        (("io-sets", "--over", "omega=1", "--metric", "speed"), "unknown metric 'speed'"),
        (("io-sets", "--over", "omega=9", "--over", "jobs=6"), "io-sets at omega=9, jobs=6: omega"),
        (("io-sets",), "--over"),
    ],
)
def test_wrong_sweeps(penstock: Any, given: tuple[str, ...], message: str) -> None:
    result = penstock("sweep", *given)
    assert result.status == 2
    assert message in result.err
    assert result.err.count("\n") == 1
