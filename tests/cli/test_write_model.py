"""penstock write-model: made of samples, judged, read, asked; and what is wrong with them, said.

Samples are of the machine's description with a little noise: simulated, and so is their source.
"""

import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.learn.write_models import dataset, samples, training
from penstock.learn.write_models import machine as machines
from penstock.learn.write_models.model import TrainedModel, save
from penstock.learn.write_models.prediction import Physical
from penstock.learn.write_models.samples import Sample
from penstock.model.write import Write

TITAN = Physical(machine=machines.load("titan"))
LARGE = ("--nodes", "64", "--cores", "8", "--burst", "1 GB")


def generated(
    count: int, seed: int = 1, *, nodes: tuple[int, ...] = (1, 2, 4, 8, 16)
) -> list[Sample]:
    chance = random.Random(seed)
    matches = []
    for _ in range(count):
        write = Write(
            nodes=chance.choice(nodes),
            cores=chance.choice([1, 2, 4, 8, 16]),
            burst=10 ** chance.uniform(9, 10),
        )
        mean = TITAN.predict(write).seconds
        times = tuple(mean * chance.lognormvariate(0, 0.05) for _ in range(4))
        matches.append(Sample(machine="titan", source="simulated", write=write, times=times))
    return matches


@pytest.fixture
def runs(directory: Path) -> str:
    samples.write(directory / "runs.csv", generated(150))
    samples.write(directory / "larger.csv", generated(40, 2, nodes=(32, 64)))
    return "runs.csv"


@pytest.fixture(scope="module")
def learned() -> TrainedModel:
    """A model of the runs: training takes longer than all that is asked of it."""
    return training.train(dataset.Dataset.from_samples(TITAN.machine, generated(150)))


@pytest.fixture
def model(directory: Path, learned: TrainedModel, runs: str) -> str:
    save(learned, directory / "m.json")
    content = (directory / "m.json").read_bytes()
    (directory / "cut.json").write_bytes(content[: len(content) // 2])
    return "m.json"


def test_a_model_of_ones_own_runs_is_made_judged_and_asked(penstock: Any, runs: str) -> None:
    made = penstock("write-model", "train", runs, "--machine", "titan", "--out", "m.json", "--json")
    assert made.json["samples"] == 150
    scores = penstock("write-model", "evaluate", "m.json", "larger.csv", "--json").json["judged"]
    assert scores["all"]["samples"] == scores["32 nodes"]["samples"] + scores["64 nodes"]["samples"]
    assert scores["all"]["median_error"] < 0.3, "twice and four times the largest scale seen"
    assert scores["all"]["outside"] == 40
    answer = penstock("predict", "--model", "m.json", *LARGE, "--json").json
    assert answer["machine"] == "titan"
    assert answer["coverage"] is None, "nothing vouches for what is outside"
    (why,) = [one for one in answer["outside"] if one.startswith("nodes ")]
    assert why == "nodes 64, seen 1 to 16"


def test_outside_the_interval_is_wider(penstock: Any, model: str) -> None:
    inside = penstock("predict", "--model", "m.json", "--nodes", "8", "--cores", "8", "--burst",
                      "2 GB", "--json").json  # fmt: skip
    assert (inside["outside"], inside["coverage"]) == ([], 0.9)
    far = penstock("predict", "--model", "m.json", "--nodes", "512", "--cores", "8", "--burst",
                   "2 GB", "--json").json  # fmt: skip
    assert far["high"] / far["low"] > inside["high"] / inside["low"]
    assert "outside    nodes 512, seen 1 to 16" in penstock(
        "predict", "--model", "m.json", "--nodes", "512", "--cores", "8", "--burst", "2 GB"
    ).out  # fmt: skip


def test_a_mean_and_one_run_have_an_interval_each(penstock: Any, model: str) -> None:
    arguments = ("predict", "--model", "m.json", "--nodes", "8", "--cores", "8", "--burst", "2 GB")
    answer = penstock(*arguments, "--json").json
    low, high = answer["run"]
    assert low <= answer["low"] < answer["high"] <= high
    assert "one run " in penstock(*arguments).out
    guess = penstock("predict", "--machine", "titan", *LARGE)
    assert "one run " not in guess.out, "a description knows nothing of runs"


def test_what_is_made_unasked_is_the_model_whose_advice_helps(penstock: Any, runs: str) -> None:
    """Advice by the paper's lasso makes many writes slower (docs/writes/write-models.md)."""
    penstock("write-model", "train", runs, "--machine", "titan", "--out", "m.json")
    assert penstock("write-model", "show", "m.json", "--json").json["technique"] == "extrapolating"


def test_advice_and_curves_take_a_model(penstock: Any, model: str, directory: Path) -> None:
    answer = penstock("advise", "--model", "m.json", "--nodes", "16", "--cores", "16", "--burst",
                    "1 GB", "--json").json  # fmt: skip
    assert answer["advised"]["outside"] == [] or answer["now"]["outside"] != []
    job = {"id": "a", "nodes": 16, "model": "m.json", "write": {"cores": 8, "burst": "1 GB"}}
    (directory / "jobs.json").write_text(json.dumps({"jobs": [job]}))
    allocated = penstock("allocate", "jobs.json", "--io-nodes", "4", "--json").json
    assert allocated["allocation"]["a"] >= 1


@pytest.mark.parametrize("technique", ["lasso", "tree", "extrapolating"])
def test_a_model_can_be_read(penstock: Any, runs: str, technique: str) -> None:
    made = penstock("write-model", "train", runs, "--machine", "titan", "--out", "m.json",
                    "--technique", technique)  # fmt: skip
    assert made.status == 0, made.err
    answer = penstock("write-model", "show", "m.json", "--json").json
    assert answer["technique"] == technique
    scales = answer["made"].get("scales", [1, 16])
    assert answer["seen"]["nodes"] == [min(scales), max(scales)]
    out = penstock("write-model", "show", "m.json").out
    assert re.search(
        r"cores per node: \d+ to \d+\n.*burst size: [\d.]+ [KMG]iB to [\d.]+ [KMG]iB", out
    )
    key = "stage" if technique == "extrapolating" else "feature"
    assert all(row[key] in out for row in answer["looks_at"])
    if technique == "lasso":
        assert all(row["stage"] for row in answer["looks_at"][:-1]), "each feature has its stage"


def test_simulated_samples_are_never_said_to_be_measured(
    penstock: Any, model: str, directory: Path
) -> None:
    answer = "made of simulated samples, not measured"
    arguments = ("--model", "m.json", "--nodes", "8", "--cores", "8", "--burst", "2 GB")
    train = ("write-model", "train", "runs.csv", "--machine", "titan", "--out", "o.json")
    for verb in (train, ("write-model", "show", "m.json"), ("predict", *arguments)):
        assert answer in penstock(*verb).out
        assert penstock(*verb, "--json").json["simulated"] is True
    assert answer in penstock("advise", *arguments).out
    assert penstock("advise", *arguments, "--json").json["now"]["simulated"] is True
    mixed = [replace(one, source="IOR 4.0") for one in generated(30, 3)]
    samples.write(directory / "mixed.csv", [*generated(150), *mixed])
    penstock("write-model", "train", "mixed.csv", "--machine", "titan", "--out", "o.json")
    assert "made partly of simulated samples" in penstock("write-model", "show", "o.json").out
    samples.write(directory / "mine.csv", mixed)
    penstock("write-model", "train", "mine.csv", "--machine", "titan", "--out", "o.json")
    assert penstock("write-model", "show", "o.json", "--json").json["simulated"] is False


def test_the_papers_techniques_see_what_the_paper_does(penstock: Any, directory: Path) -> None:
    """Converged, and 5 s or more; how many were left out is said."""
    good = generated(120)
    wild = [replace(one, times=(5.0, 50.0, 500.0)) for one in generated(7, 2)]
    short = [replace(one, times=(1.0, 1.0, 1.0)) for one in generated(5, 3)]
    samples.write(directory / "all.csv", good + wild + short)
    kept = [one for one in good if one.converged() and one.seconds >= 5]
    arguments = ("write-model", "train", "all.csv", "--machine", "titan", "--out", "m.json")
    answer = penstock(*arguments, "--technique", "linear", "--json").json
    assert (answer["samples"], answer["left_out"]) == (len(kept), 132 - len(kept))
    out = penstock(*arguments, "--technique", "linear").out
    assert f"left out   {132 - len(kept)} that have not converged" in out
    assert penstock(*arguments, "--json").json["left_out"] == 0, "ours weighs them"
    samples.write(directory / "all.csv", [replace(one, times=one.times[:1]) for one in good])
    refused = penstock(*arguments, "--technique", "linear")
    assert "0 of 120 samples have converged" in refused.err


def test_the_same_again_is_no_more_to_learn_from(penstock: Any, directory: Path) -> None:
    """Thirty copies of a line gave a model that was sure of everything."""
    samples.write(directory / "same.csv", generated(1) * 30)
    arguments = ("write-model", "train", "same.csv", "--machine", "titan", "--out", "m.json")
    assert "1 samples are too few" in penstock(*arguments).err


def test_larger_writes_judge_what_smaller_ones_taught(penstock: Any, directory: Path) -> None:
    samples.write(directory / "all.csv", generated(150))
    answer = penstock("write-model", "train", "all.csv", "--machine", "titan", "--out", "m.json",
                    "--up-to", "8", "--json").json  # fmt: skip
    assert list(answer["judged"]) == ["16 nodes", "all"]
    assert answer["samples"] + answer["judged"]["all"]["samples"] == 150


def test_sources_are_told_apart(penstock: Any, directory: Path) -> None:
    fast = generated(80)
    slow = [
        replace(one, source="slow", times=tuple(3 * t for t in one.times)) for one in generated(80)
    ]
    samples.write(directory / "both.csv", fast + slow)
    penstock("write-model", "train", "both.csv", "--machine", "titan", "--out", "m.json",
             "--by-source")  # fmt: skip
    arguments = ("predict", "--model", "m.json", "--nodes", "8", "--cores", "8", "--burst", "2 GB")
    quick = penstock(*arguments, "--tag", "simulated", "--json").json
    slack = penstock(*arguments, "--tag", "slow", "--json").json
    assert slack["seconds"] / quick["seconds"] == pytest.approx(3, rel=0.2)
    wrong = penstock(*arguments, "--tag", "slo")
    assert wrong.status == 2
    assert "did you mean 'slow'" in wrong.err
    neither = penstock(*arguments, "--json").json
    assert any("tag" in one for one in neither["outside"])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("train", "none.csv", "--machine", "titan", "--out", "o"), "none.csv cannot be read"),
        (("train", "few.csv", "--machine", "titan", "--out", "o"), "few.csv: 10 samples are too"),
        (("train", "runs.csv", "--machine", "cetus", "--out", "o"), "a sample is of 'titan'"),
        (("train", "runs.csv", "--machine", "titen", "--out", "o"), "did you mean 'titan'"),
        (("train", "runs.csv", "--machine", "titan", "--out", "no/o"), "there is no directory"),
        (
            ("train", "runs.csv", "--machine", "titan", "--out", "o", "--technique", "laso"),
            "did you mean 'lasso'",
        ),
        (
            ("train", "runs.csv", "--machine", "titan", "--out", "o", "--up-to", "99"),
            "no sample has more nodes",
        ),
        (
            ("train", "wide.csv", "--machine", "titan", "--out", "o", "--technique", "lasso"),
            "too many subsets",
        ),
        (("evaluate", "none.json", "runs.csv"), "none.json cannot be read"),
        (("evaluate", "runs.csv", "runs.csv"), "runs.csv: it is damaged"),
        (("evaluate", "cut.json", "runs.csv"), "cut.json: it is damaged"),
        (("evaluate", "m.json", "runs.csv", "--shortest", "1e9"), "no sample takes"),
        (("show", "cut.json"), "cut.json: it is damaged"),
        (("show", "few.csv"), "few.csv: it is damaged"),
    ],
)
def test_wrong_input_is_said_in_a_line(
    penstock: Any, model: str, directory: Path, args: tuple[str, ...], message: str
) -> None:
    samples.write(directory / "few.csv", generated(10))
    if "wide.csv" in args:
        samples.write(directory / "wide.csv", generated(100, nodes=tuple(range(1, 13))))
    result = penstock("write-model", *args)
    assert result.status == 2, result.out
    assert message in result.err
    assert result.err.count("\n") == 1
    assert not (directory / "o").exists()


def test_a_model_is_of_its_own_machine(penstock: Any, model: str) -> None:
    result = penstock("predict", "--model", "m.json", "--machine", "cetus", *LARGE)
    assert result.status == 2
    assert "is a model of 'titan', not of 'cetus'" in result.err
