"""Models of access patterns: what they say, what they refuse to say, and invalid files."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from learn.observations import Request, observation, requests_of

from penstock.errors import InputError
from penstock.learn.detection import features, model
from penstock.learn.detection.model import Model
from penstock.learn.trees import Tree
from penstock.live.measure.access_patterns import Pattern
from penstock.model import Observation
from penstock.model.observation import UNKNOWN

KIB = 1024
ACCESSES = {
    "file-per-process": {"number_of_files": "individual"},
    "shared-contiguous": {"number_of_files": "shared"},
    "shared-strided": {"number_of_files": "shared", "spatiality": "strided"},
}


def observed(
    pattern: str, *, ranks: int = 8, size: int = 64 * KIB, requests: int = 20
) -> Observation:
    access = Pattern(operation="write", total_size=2**30, request_size=size, **ACCESSES[pattern])  # type: ignore[arg-type]
    return observation(requests_of(access, ranks, requests=requests))


@pytest.mark.parametrize("ranks", [2, 8, 64])
@pytest.mark.parametrize("size", [8 * KIB, 128 * KIB])
@pytest.mark.parametrize("pattern", ACCESSES)
def test_ideal_patterns_are_told_at_any_scale(pattern: str, size: int, ranks: int) -> None:
    seen = observed(pattern, ranks=ranks, size=size)
    for answer in (model.shipped().detect, model.shipped().classify):
        detected, confidence = answer(seen)
        assert detected == pattern
        assert confidence >= model.shipped().least_confidence


@pytest.mark.parametrize("pattern", ["shared-contiguous", "shared-strided"])
def test_two_jobs_with_a_shared_file_each_do_not_have_files_of_their_own(pattern: str) -> None:
    """A rule on the number of files alone, as the thesis' tree has it, would say so."""
    access = Pattern(
        operation="write",
        total_size=2**30,
        request_size=64 * KIB,
        **ACCESSES[pattern],  # type: ignore[arg-type]
    )
    jobs = [requests_of(access, 8, requests=20, job=job) for job in "ab"]
    both = observation(one for pair in zip(*jobs, strict=True) for one in pair)
    assert (both.handles, both.clients) == (2, 16)
    assert model.shipped().detect(both).pattern == model.shipped().classify(both).pattern == pattern


def test_one_client_cannot_show_whose_file_it_is() -> None:
    """Its own file or its part of a shared one: the same requests, and any answer is a guess."""
    alone = observation(Request(1, "f", 64 * KIB * k, 64 * KIB) for k in range(20))
    assert model.shipped().detect(alone) == (UNKNOWN, 0.0)
    detected, confidence = model.shipped().classify(alone)
    assert detected == UNKNOWN
    assert 0.3 < confidence < model.shipped().least_confidence


def test_one_client_with_strides_is_told() -> None:
    alone = observation(Request(1, "f", 8 * 64 * KIB * k, 64 * KIB) for k in range(20))
    assert model.shipped().detect(alone).pattern == "shared-strided"


FINE = observed("file-per-process")
ABSURD = {
    "nothing": observation([]),
    "few": observation(
        list(requests_of(Pattern(operation="write", total_size=4, path="f"), 1, requests=3))
    ),
    "nan": replace(FINE, distance=math.nan),
    "infinite": replace(FINE, queued=math.inf),
    "negative": replace(FINE, distance=-1.0),
    "negative count": replace(FINE, handles=-1),
    "huge": replace(FINE, distance=1e300),
    "too many files": replace(FINE, handles=FINE.requests + 1),
    "no client": replace(FINE, clients=0),
    "no time": replace(FINE, seconds=0.0),
    "sizes": replace(FINE, smallest=FINE.largest + 1),
    "volume": replace(FINE, asked=FINE.asked * 2),
    "forward": replace(FINE, forward=1.5),
    "sequential": replace(FINE, sequential=1.5),
    "streams": replace(FINE, strided=math.nan),
    "busy": replace(FINE, busy=2 * FINE.seconds),
}


@pytest.mark.parametrize("name", ABSURD)
def test_what_cannot_be_is_unknown(name: str) -> None:
    assert model.shipped().detect(ABSURD[name]) == (UNKNOWN, 0.0)
    assert model.shipped().classify(ABSURD[name]) == (UNKNOWN, 0.0)
    assert model.shipped().situation(ABSURD[name]) == (None, 0.0)


def test_a_model_that_is_not_sure_says_nothing() -> None:
    demanding = msgspec.structs.replace(model.shipped(), least_confidence=1.0)
    unsure = [demanding.classify(observed(name)) for name in ACCESSES]
    assert all(detected == UNKNOWN or confidence == 1 for detected, confidence in unsure)
    assert any(0 < confidence < 1 for _, confidence in unsure)


@pytest.mark.parametrize(
    ("reads", "writes", "operation"),
    [(10, 0, "read"), (0, 10, "write"), (9, 1, "read"), (1, 9, "write"), (5, 5, "mixed")],
)
def test_the_operation_is_that_of_nearly_all_requests(
    reads: int, writes: int, operation: str
) -> None:
    assert features.operation(replace(FINE, reads=reads, writes=writes)) == operation


def test_the_context_is_that_of_tuners() -> None:
    context, _ = model.shipped().situation(observed("shared-strided", ranks=12, size=100 * KIB))
    assert context is not None
    assert (context.operation, context.pattern) == ("write", "shared-strided")
    assert (context.size, context.load) == (64 * KIB, 8), "powers of two at or below"


def stored(tmp_path: Path, **changed: Any) -> Path:
    content = json.loads(msgspec.json.encode(model.shipped())) | changed
    path = tmp_path / "model.json"
    path.write_text(json.dumps(content))
    return path


def a_tree(**changed: Any) -> list[dict[str, Any]]:
    tree: dict[str, Any] = {
        "feature": [0, -1, -1],
        "threshold": [1.0, 0.0, 0.0],
        "left": [1, 0, 0],
        "right": [2, 0, 0],
        "shares": [[0.4, 0.3, 0.3], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]],
    }
    return [tree | changed]


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    model.save(model.shipped(), tmp_path / "model.json")
    assert model.load(tmp_path / "model.json") == model.shipped()


def test_a_tree_goes_left_at_its_threshold(tmp_path: Path) -> None:
    path = stored(tmp_path, kind="tree", features=["handles"], trees=a_tree(), network=None)
    small = model.load(path)
    assert small.shares(replace(FINE, handles=1)) == [1.0, 0.0, 0.0]
    assert small.shares(replace(FINE, handles=2)) == [0.0, 0.5, 0.5]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"version": 2}, "version 2"),
        ({"format": "other"}, "not a model of access patterns"),
        ({"features": ["handels"]}, "did you mean 'handles'"),
        ({"classes": ["a", "b"]}, "unknown pattern"),
        ({"kind": "oak"}, "damaged"),
        ({"trees": []}, "lacks the parts of a tree"),
        ({"trees": a_tree(left=[0, 0, 0])}, "leads nowhere"),
        ({"trees": a_tree(right=[9, 0, 0])}, "leads nowhere"),
        ({"trees": a_tree(feature=[7, -1, -1])}, "leads nowhere"),
        ({"trees": a_tree(feature=[0, -1])}, "differ in length"),
        ({"trees": a_tree(shares=[[1.0], [1.0], [1.0]])}, "a share for every class"),
        ({"trees": a_tree(threshold=["x", 0, 0])}, "damaged"),
        ({"least_confidence": 7}, "damaged"),
    ],
)
def test_files_that_are_no_models_say_why(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    base = {"kind": "tree", "features": ["handles"], "trees": a_tree(), "network": None}
    with pytest.raises(InputError, match=message) as refused:
        model.load(stored(tmp_path, **(base | changed)))
    assert "model.json" in str(refused.value)
    assert "penstock patterns train" in str(refused.value)


NETWORK = {
    "power": [1.0],
    "mean": [0.0],
    "scale": [1.0],
    "layers": [{"weights": [[1.0], [0.0], [-1.0]], "bias": [0.0, 0.0, 0.0]}],
}


@pytest.mark.parametrize("power", [-20.0, 20.0])
def test_no_distance_is_too_far_for_a_network_that_was_taken(tmp_path: Path, power: float) -> None:
    """Offsets are the client's: one sparse file must not stop detection."""
    base: dict[str, Any] = {"kind": "network", "features": ["distance"], "trees": []}
    taken = model.load(stored(tmp_path, **base, network=NETWORK | {"power": [power]}))
    far = replace(FINE, distance=2.0**62)
    assert not features.doubt(far)
    assert taken.classify(far).confidence > 0


def test_a_model_without_an_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Any, values: Any) -> Any:
        raise OverflowError("math range error")

    fine = msgspec.json.encode(model.shipped())
    assert model.decode(fine, "fine") == model.shipped()
    kind = model.Network if model.shipped().network is not None else Tree
    monkeypatch.setattr(kind, "evaluate", fails)
    with pytest.raises(InputError, match="cannot be evaluated: math range error"):
        model.decode(fine, "fine")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scale": [0.0]}, "above zero"),
        ({"mean": []}, "every feature"),
        ({"layers": [{"weights": [[1.0, 2.0]] * 3, "bias": [0, 0, 0]}]}, "does not fit"),
        ({"layers": [{"weights": [[1.0]], "bias": [0]}]}, "every class"),
        ({"layers": []}, "damaged"),
        ({"power": [1e6]}, r"not within \+-20"),
        ({"power": [-20.5]}, r"not within \+-20"),
        ({"scale": [5e-324]}, "a number that is not finite"),
    ],
)
def test_networks_that_do_not_fit_are_refused(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    base: dict[str, Any] = {"kind": "network", "features": ["handles"], "trees": []}
    assert model.load(stored(tmp_path, **base, network=NETWORK)).shares(FINE)[0] > 0.5
    with pytest.raises(InputError, match=message):
        model.load(stored(tmp_path, **base, network=NETWORK | changed))


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"[" * 100_000])
def test_damaged_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.json").write_bytes(content)
    with pytest.raises(InputError, match=r"model\.json"):
        model.load(tmp_path / "model.json")


def test_half_a_file_is_refused(tmp_path: Path) -> None:
    whole = msgspec.json.encode(model.shipped())
    (tmp_path / "model.json").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="damaged"):
        model.load(tmp_path / "model.json")


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.json cannot be read: No such file"):
        model.load(tmp_path / "none.json")


def test_what_serves_needs_no_scikit_learn() -> None:
    """It takes seconds to import and a hundred megabytes: too much for a controller."""
    program = (
        "import sys; from penstock.learn.detection import model; model.shipped(); "
        "sys.exit(any(name in sys.modules for name in ('sklearn', 'scipy')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0


def test_the_shipped_model_is_small() -> None:
    assert isinstance(model.shipped(), Model)
    assert len(msgspec.json.encode(model.shipped())) < 100_000
