"""Models of writes in files: what they say, and invalid files."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from learn.write_models import synthetic

from penstock.errors import InputError
from penstock.learn.write_models import dataset, features, intervals, model, training
from penstock.learn.write_models.parameters import parameters
from penstock.learn.write_models.training import Cell, Search
from penstock.model.write import Write

SAMPLES = synthetic.table(240, noise=0.1)
SEARCH = Search(SAMPLES.long_enough(), seed=1)


@cache
def learned(technique: str) -> model.TrainedModel:
    if technique == "extrapolating":
        return training.train_extrapolation(SAMPLES, seed=1)
    return training.train_regression(SEARCH, SEARCH.evaluate(SEARCH.base(technique)))


WRITE = Write(nodes=64, cores=12, burst=2.0**31, stripe_count=8)


@pytest.mark.parametrize("technique", training.TECHNIQUES)
def test_what_is_stored_says_the_same(tmp_path: Path, technique: str) -> None:
    one = learned(technique)
    model.save(one, tmp_path / "model.json")
    loaded = model.load(tmp_path / "model.json")
    assert loaded.model == one.model
    for write in SAMPLES.writes[:20]:
        assert loaded.predict(write) == one.predict(write)


@pytest.mark.parametrize("technique", training.TECHNIQUES)
def test_a_prediction_is_near_the_law_and_inside_its_interval(technique: str) -> None:
    prediction = learned(technique).predict(WRITE)
    assert prediction.seconds == pytest.approx(synthetic.seconds(WRITE), rel=0.4)
    assert prediction.low < prediction.seconds < prediction.high
    assert (prediction.coverage, prediction.outside) == (0.9, ())


def test_a_search_gives_the_model_that_its_estimator_is() -> None:
    tried = SEARCH.evaluate(SEARCH.base("lasso"))
    row = SAMPLES.select(SAMPLES.seconds > 20).select([0])  # type: ignore[arg-type]
    direct = SEARCH.fit(tried.cell, tried.options).predict(row.matrix(SEARCH.tag_names))[0]
    assert learned("lasso").predict(row.writes[0]).seconds == pytest.approx(direct)


@pytest.mark.parametrize("technique", training.TECHNIQUES)
def test_outside_the_range_it_says_in_which_respect_and_is_less_sure(technique: str) -> None:
    stored = learned(technique).model
    growing = msgspec.structs.replace(stored.interval, growth=0.5)
    one = model.TrainedModel(msgspec.structs.replace(stored, interval=growing))
    near = one.predict(WRITE)
    far = one.predict(Write(nodes=2048, cores=8, burst=2.0**30, stripe_count=8))
    assert far.outside[0].startswith("nodes 2048, seen ")
    assert far.high / far.low > near.high / near.low
    other = one.predict(Write(nodes=16, cores=8, burst=2.0**30, shared=True, stripe_count=8))
    assert "one file for all" in other.outside


def test_the_stages_add_up_and_the_largest_is_first() -> None:
    stages = learned("extrapolating").predict(WRITE).stages
    assert stages is not None
    assert sum(stages.values()) == pytest.approx(1.0)
    assert list(stages.values()) == sorted(stages.values(), reverse=True)
    assert learned("tree").predict(WRITE).stages is None


def test_the_features_of_a_lasso_have_a_stage_a_meaning_and_seconds_a_unit() -> None:
    one = learned("lasso")
    values = parameters(synthetic.TITAN, WRITE)
    by_name = {feature.name: feature for feature in features.features(synthetic.TITAN)}
    assert 0 < len(one.selected_features) < len(by_name), "a lasso leaves some out"
    for selected in one.selected_features:
        assert (selected.stage, selected.meaning) == (
            by_name[selected.name].stage,
            by_name[selected.name].meaning,
        )
    assert one.model.linear is not None
    whole = sum(
        selected.coefficient * by_name[selected.name].value(values)
        for selected in one.selected_features
    )
    assert one.model.linear.intercept + whole == pytest.approx(one.predict(WRITE).seconds)
    assert learned("tree").selected_features == []


def test_a_write_that_the_machine_cannot_do_is_refused() -> None:
    with pytest.raises(InputError, match="nodes of titan"):
        learned("linear").predict(Write(nodes=10**6, cores=1, burst=1e6))


def stored(tmp_path: Path, technique: str, **changed: Any) -> Path:
    content = json.loads(msgspec.json.encode(learned(technique).model)) | changed
    path = tmp_path / "model.json"
    path.write_text(json.dumps(content))
    return path


def around(**other: float) -> dict[str, float]:
    return {"coverage": 0.9, "half": 1, "beyond": 1, "growth": 1, "run": 0} | other


@pytest.mark.parametrize(
    ("technique", "changed", "message"),
    [
        ("linear", {"format": "other"}, "not a model of writes"),
        ("linear", {"version": 9}, "version 9"),
        ("linear", {"kind": "trees"}, "lacks the parts of a model of kind 'trees'"),
        ("linear", {"kind": "oak"}, "damaged"),
        ("linear", {"features": ["m"]}, "not those of titan"),
        (
            "linear",
            {"linear": {"intercept": 1.0, "by_feature": [1.0]}},
            "one coefficient per feature",
        ),
        ("linear", {"least": 0}, "damaged"),
        ("linear", {"interval": around(coverage=2)}, "interval is invalid"),
        ("linear", {"interval": around(growth=-5)}, "interval is invalid"),
        ("linear", {"interval": around(half=1e9)}, "interval is invalid"),
        ("linear", {"interval": around(beyond=1e9)}, "interval is invalid"),
        ("linear", {"interval": around(run=-1)}, "interval is invalid"),
        (
            "linear",
            {"seen": {"axes": {}, "shared": [], "tags": []}},
            "range of samples .* is invalid",
        ),
        ("tree", {"trees": []}, "lacks the parts of a model of kind 'trees'"),
    ],
)
def test_files_that_are_no_models_say_why(
    tmp_path: Path, technique: str, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message) as refused:
        model.load(stored(tmp_path, technique, **changed))
    assert "model.json" in str(refused.value)
    assert "penstock write-model train" in str(refused.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"level": []}, "fit the machine"), ({"power": 0}, "power"), ({"level": "x"}, "damaged")],
)
def test_terms_that_do_not_fit_are_refused(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    whole = msgspec.to_builtins(learned("extrapolating").model.extrapolating)
    whole["term"] |= changed
    with pytest.raises(InputError, match=message):
        model.load(stored(tmp_path, "extrapolating", extrapolating=whole))


def test_a_machine_that_cannot_be_is_refused_in_a_model_too(tmp_path: Path) -> None:
    content = json.loads(msgspec.json.encode(learned("linear").model))
    content["machine"]["striping"]["servers"] = 5000
    with pytest.raises(InputError, match="5000 servers for 1008 targets"):
        model.load(stored(tmp_path, "linear", machine=content["machine"]))


def test_stages_in_another_order_are_refused(tmp_path: Path) -> None:
    """Capacities are by place: swapped stages would each have the other's."""
    machine = json.loads(msgspec.json.encode(learned("extrapolating").model))["machine"]
    machine["stage"] = machine["stage"][::-1]
    with pytest.raises(InputError, match="not those of titan"):
        model.load(stored(tmp_path, "extrapolating", machine=machine))


def test_a_model_has_seen_the_scales_that_it_is_made_of() -> None:
    cell = Cell(technique="linear", scales=(8, 32, 64))
    one = training.train_regression(SEARCH, SEARCH.evaluate(cell))
    assert one.model.range.axes["nodes"] == (8, 64)
    assert one.model.provenance["samples"] < len(SEARCH.samples)
    assert one.predict(Write(nodes=128, cores=4, burst=2.0**30, stripe_count=8)).outside


def test_every_respect_adds_to_how_far_outside_a_write_is() -> None:
    """An unseen layout added nothing to unseen nodes; bytes in all are nodes and bursts again."""
    seen = learned("linear").model.range

    def octaves(**changed: Any) -> float:
        write = replace(WRITE, **changed)
        return dataset.distance(seen.outside(synthetic.TITAN, write))

    assert octaves() == 0
    assert octaves(nodes=512) == pytest.approx(2)
    assert octaves(nodes=512, shared=True) == pytest.approx(2 + dataset.UNSEEN_KIND)
    assert octaves(nodes=512, burst=seen.axes["bytes of a burst"][1] * 8) == pytest.approx(5)


def test_samples_that_agree_leave_a_percent_of_doubt() -> None:
    exact = training.train_extrapolation(synthetic.table(100), seed=1)
    assert exact.model.interval.half >= intervals.LEAST_HALF


def test_outside_no_probability_is_vouched_for() -> None:
    inside = learned("lasso").predict(WRITE)
    far = learned("lasso").predict(replace(WRITE, nodes=512))
    assert (inside.sure, far.sure, far.coverage) == (0.9, None, 0.9)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"[" * 100_000])
def test_damaged_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.json").write_bytes(content)
    with pytest.raises(InputError, match=r"model\.json"):
        model.load(tmp_path / "model.json")


def test_half_a_file_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    whole = msgspec.json.encode(learned("tree").model)
    (tmp_path / "model.json").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="damaged"):
        model.load(tmp_path / "model.json")
    with pytest.raises(InputError, match="cannot be read"):
        model.load(tmp_path / "none.json")


def test_too_few_samples_and_unknown_techniques_are_refused() -> None:
    with pytest.raises(InputError, match="5 samples are too few"):
        training.train(synthetic.table(5))
    with pytest.raises(InputError, match="did you mean 'forest'"):
        training.train(SAMPLES, "forrest")


def test_asking_needs_no_scikit_learn(tmp_path: Path) -> None:
    """It takes seconds to import; `penstock predict` is to answer at once."""
    model.save(learned("extrapolating"), tmp_path / "model.json")
    program = (
        "import sys; from pathlib import Path; from penstock.learn.write_models import model; "
        "from penstock.model.write import Write; "
        "model.load(Path(sys.argv[1])).predict(Write(nodes=4, cores=4, burst=1e9)); "
        "sys.exit(any(name.startswith('sklearn') for name in sys.modules))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "model.json")]
    assert subprocess.run(command, check=False, timeout=60).returncode == 0
