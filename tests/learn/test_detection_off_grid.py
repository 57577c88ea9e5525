"""Accesses that no model was trained with: the right pattern or "unknown", not a wrong one."""

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from learn.observations import Request, observation

from penstock.learn.detection import definitions, evaluation, model, samples
from penstock.learn.detection.off_grid import KINDS, Kind, Run
from penstock.learn.detection.samples import OPERATIONS, Operation
from penstock.model import Observation
from penstock.model.observation import UNKNOWN

CLASSIFIED = [kind for kind in KINDS.values() if kind.pattern != "none"]
UNCLASSIFIED = [kind for kind in KINDS.values() if kind.pattern == "none"]


def requests_of(kind: Kind, run: Run, requests: int) -> Iterator[Request]:
    """Yield the requests of ranks that run at different speeds and drift apart."""
    rng = random.Random(run.seed)
    ranks = [kind.ranks(run, rank) for rank in range(run.ranks)]
    speeds = [rng.uniform(0.5, 1) for _ in ranks]
    for rank in rng.choices(range(run.ranks), speeds, k=requests * run.ranks):
        one = next(ranks[rank])
        yield Request(rank, one.file, one.offset, one.bytes, one.read)


def observed(
    kind: Kind, *, ranks: int = 8, operation: Operation = "write", seed: int = 1, requests: int = 20
) -> Observation:
    run = kind.run(ranks=ranks, operation=operation, seed=seed)
    return observation(requests_of(kind, run, requests))


def detected(kind: Kind, **parameters: int) -> Counter[str]:
    """Count the answers over operations and seeds."""
    return Counter(
        model.shipped().detect(observed(kind, operation=operation, seed=seed, **parameters)).pattern
        for operation in OPERATIONS
        for seed in range(10)
    )


@pytest.mark.parametrize("ranks", [4, 24])
@pytest.mark.parametrize("kind", UNCLASSIFIED, ids=lambda kind: kind.name)
def test_what_is_in_no_class_is_unknown(kind: Kind, ranks: int) -> None:
    assert detected(kind, ranks=ranks) == {UNKNOWN: 20}


@pytest.mark.parametrize("ranks", [4, 24])
@pytest.mark.parametrize("kind", CLASSIFIED, ids=lambda kind: kind.name)
def test_a_pattern_with_other_requests_is_right(kind: Kind, ranks: int) -> None:
    answers = detected(kind, ranks=ranks)
    assert set(answers) <= {kind.pattern, UNKNOWN}
    assert answers[kind.pattern] >= 19, answers


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_few_requests_are_never_wrong(kind: Kind) -> None:
    assert set(detected(kind, requests=3)) <= {kind.pattern, UNKNOWN}


def test_the_last_parts_of_large_requests_are_no_pattern() -> None:
    """An interval in which each of 8 clients had the second half of one strided request alone:
    every part follows another one, and the model said "shared-contiguous" once on a busy machine.
    """
    seen = observed(KINDS["on-grid-own-files"])
    halves = replace(seen, writes=10, reads=0, clients=8, sequential=0.9, strided=0.1, shared=1.0)
    assert definitions.pattern(halves) == (UNKNOWN, 0.0)
    more = replace(halves, writes=2 * halves.clients)
    assert definitions.pattern(more) == ("shared-contiguous", 0.9)


def test_who_comes_first_does_not_change_what_a_process_does() -> None:
    kind = KINDS["small-strides"]
    run = kind.run(ranks=8, operation="write", seed=1)
    arrived = list(requests_of(kind, run, 40))
    by_rank = sorted(arrived, key=lambda one: one.client)
    for requests in (arrived, by_rank):
        assert model.shipped().detect(observation(requests)).pattern == "shared-strided"


def test_without_streams_the_model_takes_random_offsets_for_segments() -> None:
    """It has no class for them, and no metric of a file as a whole tells them apart."""
    seen = observed(KINDS["random"])
    assert model.shipped().detect(seen) == (UNKNOWN, 0.0)
    assert model.shipped().classify(seen).pattern == "shared-contiguous"
    without = replace(seen, sequential=None, strided=None, shared=None)
    assert model.shipped().detect(without) == model.shipped().classify(seen)


def test_the_confidence_is_the_part_of_requests_that_agree() -> None:
    seen = observed(KINDS["on-grid-own-files"])
    nearly = replace(seen, sequential=0.93)
    assert model.shipped().detect(nearly) == ("file-per-process", 0.93)
    assert model.shipped().detect(replace(seen, sequential=0.85)).pattern == UNKNOWN
    assert model.shipped().detect(replace(seen, shared=0.5)).pattern == UNKNOWN


def test_the_page_has_the_figures_of_the_observations_in_the_package() -> None:
    page = (Path(__file__).parents[2] / "docs/live/patterns.md").read_text()
    by_kind: dict[str, list[str]] = {}
    for answer in (model.shipped().detect, model.shipped().classify):
        for one in evaluation.off_grid_scores(samples.off_grid(), answer):
            by_kind.setdefault(one.kind, []).append(f"{one.right} / {one.unknown} / {one.wrong}")
    assert by_kind.keys() == KINDS.keys()
    for kind, (detected, alone) in by_kind.items():
        assert re.search(rf"^\| `{kind}` \|.*\| {detected} \| {alone} \|$", page, re.M), kind
