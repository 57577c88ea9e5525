"""penstock generate: the presets in files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.sim import formats, generators
from penstock.sim.formats import free_memory
from penstock.sim.generators import PRESETS
from penstock.sim.generators.packs import Choices, packs


@pytest.mark.parametrize("suffix", [".json", ".npz"])
@pytest.mark.parametrize("preset", ["io-sets", "plafrim"])
def test_a_preset(penstock: Any, directory: Path, preset: str, suffix: str) -> None:
    file = f"w{suffix}"
    options = ("--jobs", "12", "--omega", "0.5", "--noise", "0", "--horizon", "10 min")
    result = penstock("generate", preset, "--out", file, *options, "--seed", "4", "--json").json
    workload = formats.read(directory / file)
    assert (len(workload), workload.iterations) == (result["jobs"], result["iterations"])
    assert workload.horizon == 600
    assert workload.omega == pytest.approx(0.5)
    expected = PRESETS[preset].make(jobs=12, omega=0.5, noise=0.0, horizon=600.0, seed=4)
    np.testing.assert_array_equal(workload.io, expected.io)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_can_be_drawn_and_run(penstock: Any, directory: Path, preset: str) -> None:
    penstock("generate", preset, "--out", "w.npz", "--seed", "3")
    result = penstock("simulate", "w.npz", "--policy", "fair-share", "--json")
    assert result.json["jobs"] == len(PRESETS[preset].make(seed=3))


def test_the_open_choices_of_paper_packs_can_be_set(penstock: Any, directory: Path) -> None:
    chosen = ("--loads", "0", "2", "--deviation", "0.3", "--sizes", "normal", "--size-factor", "2")
    penstock("generate", "packs", *chosen, "--out", "w.npz", "--seed", "5")
    choices = Choices(loads=(0.0, 2.0), deviation=0.3, sizes="normal", size_factor=2.0)
    expected, drawn = packs(2.0, seed=5, choices=choices), formats.read(directory / "w.npz")
    np.testing.assert_array_equal(drawn.io, expected.io)
    np.testing.assert_array_equal(drawn.nodes, expected.nodes)
    assert "--sizes binomial" in penstock("generate", "--list").out
    refused = penstock("generate", "io-sets", "--size-factor", "2", "--out", "w.json")
    assert "--size-factor is not an option of io-sets" in refused.err


def test_an_option_of_another_preset_is_refused(penstock: Any) -> None:
    result = penstock("generate", "packs", "--omega", "1", "--out", "w.json")
    assert result.status == 2
    assert "--omega is not an option of packs, which has --jobs, --alpha" in result.err


def test_more_io_than_the_jobs_can_do_is_refused(penstock: Any) -> None:
    result = penstock("generate", "io-resources", "--theta", "2", "--out", "w.json")
    assert result.status == 2
    assert "theta N / K = 2 x 20 / 40 = 1" in result.err


def test_jobs_with_curves_can_be_allocated_and_simulated(penstock: Any) -> None:
    penstock("generate", "io-resources", "--out", "w.json")
    site = ("--set", "site.nodes=480", "--set", "site.resources=20", "--json")
    answer = penstock("allocate", "w.json", "--policy", "t-cpu", *site).json
    assert set(answer["allocation"].values()) <= set(range(1, 9))
    own = penstock("simulate", "w.json", "--policy", "fair-share", *site).json
    options = ("--allocation", "t-cpu", "--policy", "fair-share")
    spread = penstock("simulate", "w.json", *options, *site).json
    assert spread["makespan"] < own["makespan"] / 5


def test_the_list(penstock: Any) -> None:
    assert [entry["name"] for entry in penstock("generate", "--list", "--json").json] == list(
        PRESETS
    )
    assert "io-sets" in penstock("generate", "--list").out


def test_for_people(penstock: Any) -> None:
    result = penstock("generate", "io-sets", "--horizon", "100", "--out", "w.json")
    assert result.out.startswith("w.json: 60 jobs, ")
    assert "penstock compare w.json" in result.out


def test_more_than_memory_holds_is_refused_at_once(
    penstock: Any, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_memory, "available", lambda: 8 * 2**30)
    for options in (("--jobs", "1000000000"), ("--horizon", "1e15")):
        result = penstock("generate", "io-sets", "--out", "w.npz", *options)
        assert result.status == 2
        assert "of memory, but 8 GiB are available" in result.err
    assert not (directory / "w.npz").exists()


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_a_file_says_what_drew_it(penstock: Any, directory: Path, suffix: str) -> None:
    options = ("--n-h", "3", "--n-l", "1", "--jobs", "6", "--horizon", "300", "--seed", "4")
    penstock("generate", "io-sets", *options, "--out", f"w{suffix}")
    workload = formats.read(directory / f"w{suffix}")
    assert workload.profile is not None
    assert workload.profile.tolist() == [10, 10, 10, 100, 100, 1000]
    assert workload.generator is not None
    assert (workload.generator.preset, workload.generator.seed) == ("io-sets", 4)
    drawn = generators.draw("io-sets", 4, workload.generator.options)
    assert (drawn.compute == workload.compute).all()


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_a_file_of_packs_can_be_drawn_again(penstock: Any, directory: Path, suffix: str) -> None:
    """Some of its options are texts and pairs."""
    options = ("--sizes", "geometric", "--loads", "0", "2", "--jobs", "5", "--seed", "3")
    penstock("generate", "packs", *options, "--out", f"w{suffix}")
    workload = formats.read(directory / f"w{suffix}")
    assert workload.generator is not None
    assert workload.generator.options["sizes"] == "geometric"
    assert workload.generator.options["loads"] == (0, 2)
    drawn = generators.draw("packs", 3, workload.generator.options)
    assert (drawn.io == workload.io).all()


@pytest.mark.parametrize(
    "option", [{"loads": 2}, {"loads": (1, 2, 3)}, {"sizes": 1}, {"jobs": "5"}]
)
def test_an_option_of_another_kind_is_refused(option: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"option {next(iter(option))} of packs is"):
        generators.draw("packs", 0, option)
