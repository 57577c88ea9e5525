"""Models made of the shipped observations: as exported they say what scikit-learn says."""

import csv
import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score, confusion_matrix, recall_score

from penstock.errors import InputError
from penstock.learn.detection import evaluation, features, model, samples, training
from penstock.learn.detection.samples import Sample
from penstock.learn.detection.training import KINDS, Kind, Trained
from penstock.model.observation import PATTERNS, UNKNOWN

KNOWN = samples.of_sizes(samples.shipped(), samples.TRAINED_ON)
UNSEEN = samples.of_sizes(samples.shipped(), samples.JUDGED_BY)
SEVERAL = evaluation.several_clients(UNSEEN)


@cache
def trained(kind: Kind) -> Trained:
    first, _ = training.split(KNOWN, seed=7)
    return training.train(first, kind, features.select(KNOWN), seed=7, trees=20)


@pytest.mark.parametrize("kind", KINDS)
def test_the_exported_model_is_the_one_that_was_trained(kind: Kind) -> None:
    """Class by class, on what it has never seen; a tree's shares are smoothed on export."""
    result = trained(kind)
    reference = result.estimator.predict_proba(features.table(UNSEEN, result.model.features))
    exported = np.array([result.model.shares(one.observation) for one in UNSEEN])
    assert np.allclose(exported.sum(axis=1), 1, atol=1e-4)
    if kind != "tree":
        assert np.allclose(exported, reference, atol=1e-5)
    decided = np.sort(reference, axis=1)[:, -1] - np.sort(reference, axis=1)[:, -2] > 1e-6
    assert decided.mean() > 0.8
    assert (exported.argmax(axis=1) == reference.argmax(axis=1))[decided].all()


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_never_seen_are_told(kind: Kind) -> None:
    scores = evaluation.model_scores(trained(kind).model, SEVERAL)
    assert scores.accuracy >= 0.99, scores
    assert scores.coverage >= 0.98, scores


def test_the_shipped_model_meets_its_bar() -> None:
    scores = evaluation.model_scores(model.shipped(), SEVERAL)
    assert scores.accuracy >= 0.99
    assert scores.coverage >= 0.99
    assert not {one.request for one in SEVERAL} & set(model.shipped().provenance["sizes"])


def test_the_shipped_model_says_little_where_one_client_is_alone() -> None:
    alone = [one for one in UNSEEN if one.processes == one.io_nodes]
    scores = evaluation.model_scores(model.shipped(), alone)
    assert scores.accuracy >= 0.99
    assert scores.unknown[:2] == (40, 40), "contiguous ones: own file or shared"
    assert scores.matrix[2][2] >= 36, "strides are told"


def test_training_is_the_same_every_time() -> None:
    first, second = (
        training.train(KNOWN, "forest", features.THESIS, seed=2, trees=3).model for _ in range(2)
    )
    assert first == second


def test_the_split_shares_nothing_and_has_all_classes() -> None:
    first, second = training.split(KNOWN, seed=1)
    assert len(first) + len(second) == len(KNOWN)
    assert not {id(one) for one in first} & {id(one) for one in second}
    assert len(second) == pytest.approx(0.3 * len(KNOWN), abs=1)
    assert {one.pattern for one in second} == set(PATTERNS)


def test_too_little_to_learn_from_is_said() -> None:
    without = [one for one in KNOWN if one.pattern != "shared-strided"]
    with pytest.raises(InputError, match="too few observations of shared-strided"):
        training.split(without, seed=1)


def guesses(seed: int) -> tuple[list[Sample], list[str]]:
    rng = random.Random(seed)
    return list(UNSEEN), [rng.choice([one.pattern, *PATTERNS]) for one in UNSEEN]


def test_scores_are_those_of_scikit_learn() -> None:
    there, answered = guesses(3)
    answers = dict(zip((id(one.observation) for one in there), answered, strict=True))
    scores = evaluation.scores(there, lambda seen: answers[id(seen)])
    truth = [one.pattern for one in there]
    assert np.array_equal(scores.matrix, confusion_matrix(truth, answered, labels=list(PATTERNS)))
    assert scores.accuracy == pytest.approx(accuracy_score(truth, answered))
    assert scores.kappa == pytest.approx(cohen_kappa_score(truth, answered))
    by_class = recall_score(truth, answered, labels=list(PATTERNS), average=None)
    assert scores.sensitivity == pytest.approx(by_class)
    for k, pattern in enumerate(PATTERNS):
        others = [a != pattern for a in truth]
        kept = [a != pattern for a in answered]
        assert scores.specificity[k] == pytest.approx(recall_score(others, kept))


def test_what_is_unknown_is_no_error_and_no_success() -> None:
    scores = evaluation.scores(UNSEEN, lambda _: UNKNOWN)
    assert (scores.answered, scores.accuracy, scores.coverage) == (0, 0.0, 0.0)
    assert scores.observations == len(UNSEEN)


def test_the_strongest_features_are_chosen_and_none_twice() -> None:
    chosen = features.select(KNOWN)
    strength = {one.feature: one.strength for one in features.correlations(KNOWN)}
    assert chosen == sorted(chosen, key=lambda name: -strength[name])
    assert "evenness" not in chosen, "it is the same everywhere"
    everything = features.select(KNOWN, among=features.FEATURES, count=99)
    assert not {"size", "smallest", "largest"} & set(everything), "as many of each class have each"
    assert set(chosen) <= set(features.SCALE_FREE)


def test_spearman_is_scipys() -> None:
    from scipy.stats import spearmanr  # noqa: PLC0415

    (correlation,) = [one for one in features.correlations(KNOWN) if one.feature == "distance"]
    distance = [one.observation.distance for one in KNOWN]
    order = [features.THESIS_ORDER.index(one.pattern) for one in KNOWN]
    assert correlation.ordered == pytest.approx(spearmanr(distance, order).statistic)
    own = [one.pattern == PATTERNS[0] for one in KNOWN]
    assert correlation.by_class[0] == pytest.approx(spearmanr(distance, own).statistic)


def test_forests_are_judged_by_folds() -> None:
    some = SEVERAL[::4]
    scores = training.cross_validated(
        some, features.THESIS, classes=training.labels(some), seed=1, folds=3, trees=5
    )
    assert [one.mtry for one in scores] == [2, 3, 5]
    assert all(0.9 < one.kappa <= one.accuracy <= 1 for one in scores)


def test_samples_are_read_back(tmp_path: Path) -> None:
    some = UNSEEN[:50]
    samples.write(tmp_path / "some.csv", some)
    assert samples.read(tmp_path / "some.csv") == tuple(some)


def test_the_shipped_observations_are_balanced() -> None:
    cells: dict[object, int] = {}
    for one in samples.shipped():
        cell = (one.pattern, one.operation, one.request, one.processes, one.io_nodes)
        cells[cell] = cells.get(cell, 0) + 1
    assert len(cells) == 3 * 2 * 4 * 3 * 3
    assert set(cells.values()) == {10}
    assert all(not features.doubt(one.observation) for one in samples.shipped())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("pattern", "shared-stirred"), "line 2"),
        (("requests", "4"), ""),
        (("handles", "many"), "line 2"),
        (("distance", ""), "line 2"),
    ],
)
def test_wrong_lines_are_named(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    row = {k: str(v) for k, v in UNSEEN[0].row.items()} | dict([change])
    path = tmp_path / "some.csv"
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, row)
        table.writeheader()
        table.writerow(row)
    if not message:
        assert samples.read(path)[0] == UNSEEN[0], "a column that is not known is passed over"
        return
    with pytest.raises(InputError, match=message):
        samples.read(path)


def test_files_that_are_no_observations_say_so(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    for content, message in (
        ("a,b\n1,2\n", "no column 'pattern'"),
        ("", "no column"),
        (",".join(samples.COLUMNS) + "\n", "no observations"),
    ):
        path.write_text(content)
        with pytest.raises(InputError, match=message):
            samples.read(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="cannot be read"):
        samples.read(path)


def test_a_doubtful_observation_is_never_a_guess() -> None:
    wrong = replace(UNSEEN[0], observation=replace(UNSEEN[0].observation, clients=-4))
    assert evaluation.model_scores(model.shipped(), [wrong]).coverage == 0
