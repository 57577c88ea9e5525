"""One check for every registered tuner."""

import importlib
import json
import math
from typing import Any

import numpy as np
import pytest

from penstock import registry
from penstock.errors import InputError
from penstock.model import Context
from penstock.policies.base import Tuner

VALUES = (125e-6, 250e-6, 500e-6, 1e-3, "off")
THROUGHPUT = dict(zip(VALUES, (6e8, 7e8, 1e9, 8e8, 5e8), strict=True))
WRITE = Context(operation="write", pattern="shared-contiguous", size=32768, load=8)
READ = Context(operation="read", pattern="file-per-process", size=65536, load=1)


@pytest.fixture(params=sorted(registry.table("tuning")))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def trained_tuner(name: str, observations: int, **options: Any) -> tuple[Tuner, list[Any]]:
    """Return a tuner that met two contexts in turn, and what it chose."""
    tuner: Tuner = registry.policy("tuning", name, options)
    return tuner, train(tuner, 0, observations)


def train(tuner: Tuner, start: int, observations: int) -> list[Any]:
    choices = []
    for t in range(start, start + observations):
        context = (WRITE, READ)[t % 2]
        value = tuner.choose(context, VALUES)
        noise = np.random.default_rng([7, t]).normal(1, 0.05)
        tuner.learn(context, value, THROUGHPUT[value] * noise)
        choices.append(value)
    return choices


def test_it_follows_the_protocol(name: str) -> None:
    assert isinstance(registry.policy("tuning", name), Tuner)
    with pytest.raises(InputError, match="option"):
        registry.policy("tuning", name, {"no-such-option": 1})
    with pytest.raises(InputError, match="seed"):
        registry.policy("tuning", name, {"seed": -1})


def test_one_policy_one_file_of_a_page(name: str) -> None:
    module_name, _, class_name = registry.table("tuning")[name].partition(":")
    module = importlib.import_module(module_name)
    assert module_name.rpartition(".")[2] == name.replace("-", "_")
    assert class_name == "".join(word.capitalize() for word in name.split("-"))
    assert module.__doc__ is not None
    assert module.__doc__.startswith(f"{name}: ")
    assert "aper forwarding" in module.__doc__
    for option in registry.options(registry.load("tuning", name)):
        assert f"`{option}`" in module.__doc__, option


def test_the_best_of_distinct_values_is_found(name: str) -> None:
    tuner, chosen = trained_tuner(name, 800)
    for context in (WRITE, READ):
        assert tuner.best(context, VALUES) == 500e-6
    assert chosen[-200:].count(500e-6) > 100


def test_the_seed_decides(name: str) -> None:
    assert trained_tuner(name, 100)[1] == trained_tuner(name, 100)[1]
    assert len({tuple(trained_tuner(name, 50, seed=seed)[1]) for seed in range(3)}) > 1


def test_what_was_learnt_goes_on_as_if_nothing_had_happened(name: str) -> None:
    """A standby that restores a checkpoint makes the choices that the first would have made."""
    tuner, _ = trained_tuner(name, 400)
    saved = json.loads(json.dumps(tuner.learned()))
    standby: Tuner = registry.policy("tuning", name)
    standby.restore(saved)
    assert standby.learned() == saved
    assert train(standby, 400, 200) == train(tuner, 400, 200)
    assert standby.learned() == tuner.learned()


def test_a_context_never_seen(name: str) -> None:
    tuner, _ = trained_tuner(name, 100)
    stranger = Context(operation="mixed", pattern="unknown", size=1, load=1)
    before = tuner.learned()
    assert tuner.best(stranger, VALUES) is None
    assert tuner.choose(stranger, VALUES) in VALUES
    assert tuner.learned() == before


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf, -1.0, 1e31])
def test_what_is_no_reward_is_refused(name: str, reward: float) -> None:
    tuner, _ = trained_tuner(name, 20)
    before = tuner.learned()
    with pytest.raises(InputError, match="reward"):
        tuner.learn(WRITE, VALUES[0], reward)
    assert tuner.learned() == before


def test_values_come_and_go(name: str) -> None:
    """A value no longer offered is not chosen, a new one is, and a known one is still known."""
    tuner, _ = trained_tuner(name, 400)
    fewer = (8e-3, 1e-3, 125e-6)
    chosen = set()
    for _ in range(300):
        value = tuner.choose(WRITE, fewer)
        chosen.add(value)
        tuner.learn(WRITE, value, THROUGHPUT.get(value, 1e8))
    assert chosen <= set(fewer)
    assert 8e-3 in chosen
    assert tuner.best(WRITE, fewer) == 1e-3
    assert tuner.best(WRITE, ("new",)) is None
    with pytest.raises(InputError, match="no value"):
        tuner.choose(WRITE, ())


def test_a_value_offered_twice_does_no_harm(name: str) -> None:
    tuner: Tuner = registry.policy("tuning", name)
    for _ in range(10):
        tuner.learn(WRITE, tuner.choose(WRITE, (1, 2, 1)), 5.0)
    again: Tuner = registry.policy("tuning", name)
    again.restore(tuner.learned())
    assert again.learned() == tuner.learned()
    assert tuner.best(WRITE, (1, 2, 1)) in {1, 2}


DAMAGE = {
    "of another policy": lambda d: d.update(policy="somebody-elses"),
    "of another format": lambda d: d.update(format=99),
    "without a policy": lambda d: d.pop("policy"),
    "without contexts": lambda d: d.pop("contexts"),
    "with a field more": lambda d: d.update(more=1),
    "without counts": lambda d: d["contexts"][0].pop("count"),
    "with a count less": lambda d: d["contexts"][0]["count"].pop(),
    "with a negative count": lambda d: d["contexts"][0]["count"].__setitem__(0, -1.0),
    "with a mean that is no number": lambda d: d["contexts"][0]["mean"].__setitem__(0, math.nan),
    "with an endless mean": lambda d: d["contexts"][0]["mean"].__setitem__(0, math.inf),
    "with an absurd mean": lambda d: d["contexts"][0]["mean"].__setitem__(0, 1e300),
    "with text for a mean": lambda d: d["contexts"][0]["mean"].__setitem__(0, "much"),
    "with more counted than seen": lambda d: d["contexts"][0].update(seen=1),
    "tried before the first": lambda d: d["contexts"][0]["last"].__setitem__(0, -1),
    "with the least above the greatest": lambda d: d["contexts"][0].update(low=2e9, high=1e9),
    "with a window of nothing": lambda d: d["contexts"][0].update(recent=[1.0], which=[99]),
    "seen for ever": lambda d: d["contexts"][0].update(seen=2**60),
    "with an operation unheard of": lambda d: d["contexts"][0].update(operation="erase"),
    "with a context twice": lambda d: d["contexts"].append(d["contexts"][0]),
    "with a value twice": lambda d: d["contexts"][0]["values"].__setitem__(
        0, d["contexts"][0]["values"][1]
    ),
    "without values": lambda d: d["contexts"][0].update(
        values=[], count=[], mean=[], scatter=[], last=[], recent=[], which=[]
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_state_is_refused_and_nothing_is_lost(name: str, damage: str) -> None:
    tuner, _ = trained_tuner(name, 20)
    before = tuner.learned()
    damaged = json.loads(json.dumps(before))
    DAMAGE[damage](damaged)
    with pytest.raises(InputError, match="learned state"):
        tuner.restore(damaged)
    assert tuner.learned() == before


@pytest.mark.parametrize("nonsense", [None, [], "text", 7, {}])
def test_nonsense_for_state_is_refused(name: str, nonsense: Any) -> None:
    with pytest.raises(InputError, match="learned state"):
        registry.policy("tuning", name).restore(nonsense)
