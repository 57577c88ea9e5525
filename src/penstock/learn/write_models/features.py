"""Features of a write on a machine: named products of parameters, each with its stage and meaning.

Paper write-models, III-B. A parameter of a stage is a feature twice, positive and inverse, because
time may rise or fall with it; adjacent stages are multiplied, because both may be the bottleneck;
three features stand for interference. Features that the paper counts twice (m is also interference,
and m / (m n K) is 1 / (n K)) are listed twice, and give one column.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.errors import InputError, unknown
from penstock.learn.write_models.machine import Machine, Stage
from penstock.learn.write_models.parameters import Floats, parameters
from penstock.model.write import Write


@dataclass(frozen=True, slots=True)
class Feature:
    """The product of some parameters, or its inverse."""

    name: str
    symbols: tuple[str, ...]
    inverse: bool
    stage: str
    meaning: str

    def value(self, values: Mapping[str, float]) -> float:
        """Return the feature for the parameters of a write; 0 where it would divide by zero."""
        product = math.prod(values[symbol] for symbol in self.symbols)
        return (1.0 / product if product else 0.0) if self.inverse else product


def all_features(machine: Machine) -> list[Feature]:
    """Return all features as the paper lists them, repeated ones included."""
    single = list(_stage_features(machine))
    by_name = {feature.name: feature for feature in single}
    return [*single, *_crossed(machine, by_name), *_interference()]


def features(machine: Machine) -> list[Feature]:
    """Return the distinct features, one per column."""
    distinct: dict[tuple[tuple[str, ...], bool], Feature] = {}
    for feature in all_features(machine):
        distinct.setdefault((tuple(sorted(feature.symbols)), feature.inverse), feature)
    return list(distinct.values())


def twins(machine: Machine) -> dict[str, str]:
    """Return features that always equal another feature on this machine, with that one.

    Groups with the same number of nodes are equal, such as bridge nodes and links of Cetus: both
    columns are there, as in the paper, and a model may use either.
    """
    first: dict[int, str] = {}
    alike = {one.symbol: first.setdefault(one.nodes_each, one.symbol) for one in machine.groups}
    renamed = {f"{k}_{one}": f"{k}_{other}" for one, other in alike.items() for k in "sn"}
    result: dict[str, str] = {}
    names: dict[tuple[tuple[str, ...], bool], str] = {}
    for feature in features(machine):
        symbols = tuple(sorted(renamed.get(symbol, symbol) for symbol in feature.symbols))
        other = names.setdefault((symbols, feature.inverse), feature.name)
        if other != feature.name:
            result[feature.name] = other
    return result


def matrix(machine: Machine, writes: Iterable[Write]) -> Floats:
    """Return the distinct features' values, one row per write."""
    columns = features(machine)
    rows = [row(columns, parameters(machine, write)) for write in writes]
    return np.array(rows, np.float64).reshape(-1, len(columns))


def row(columns: Sequence[Feature], values: Mapping[str, float]) -> list[float]:
    """Return the values of features for the parameters of one write."""
    return [feature.value(values) for feature in columns]


def _stage_features(machine: Machine) -> Iterator[Feature]:
    for stage in machine.stage:
        match stage.kind:
            case "metadata":
                yield from _both(("m", "n"), stage, "operations in all")
                yield from _both((_sender(stage), "n"), stage, "operations that go together")
                yield from _both((_senders(stage),), stage, "who sends them")
            case "subblocks":
                yield _positive(("m", "n", "n_sub"), stage, "ends of files in all")
                yield _positive((_sender(stage), "n", "n_sub"), stage, "ends that go together")
            case "node":
                yield from _both(("n", "K"), stage, "load of a node")
                yield from _both(("K",), stage, "load of a core")
                yield from _both(("m",), stage, "nodes in use")
                yield from _both(("n",), stage, "cores of a node in use")
            case "group":
                yield from _both((f"s_{stage.symbol}", "n", "K"), stage, "load of the busiest")
                yield from _both((f"n_{stage.symbol}",), stage, "in use")
            case "network":
                yield from _both(("m", "n", "K"), stage, "load in all")
            case "server" | "target":
                if stage.of_a_burst:
                    yield from _both((f"n_{stage.of_a_burst}",), stage, "in use by a burst")
                if stage.skewed:
                    yield from _both((f"s_{stage.symbol}",), stage, "load of the busiest")
                yield from _both((f"n_{stage.symbol}",), stage, "in use")


def _sender(stage: Stage) -> str:
    return f"s_{stage.through}" if stage.through else ""


def _senders(stage: Stage) -> str:
    return f"n_{stage.through}" if stage.through else "m"


def _both(symbols: tuple[str, ...], stage: Stage, meaning: str) -> Iterator[Feature]:
    positive = _positive(symbols, stage, meaning)
    inverse = _inverse_name(positive.name)
    yield positive
    yield Feature(inverse, positive.symbols, True, stage.name, f"inverse of {meaning}")


def _positive(symbols: tuple[str, ...], stage: Stage, meaning: str) -> Feature:
    symbols = tuple(symbol for symbol in symbols if symbol)
    return Feature("*".join(symbols), symbols, False, stage.name, meaning)


def _inverse_name(name: str) -> str:
    return f"1/({name})" if "*" in name else f"1/{name}"


def _crossed(machine: Machine, by_name: Mapping[str, Feature]) -> Iterator[Feature]:
    for pair in machine.cross:
        for name in pair:
            if name not in by_name:
                raise unknown(f"feature of {machine.name}'s cross", name, by_name)
        one, other = (by_name[name] for name in pair)
        if one.inverse or other.inverse:
            raise InputError(f"{machine.name}'s cross multiplies an inverse; give positive ones")
        yield Feature(
            f"({one.name})*({other.name})",
            (*one.symbols, *other.symbols),
            False,
            f"{one.stage} and {other.stage}",
            f"{one.meaning} times {other.meaning}",
        )


def _interference() -> Iterator[Feature]:
    stage = "interference"
    yield Feature("m", ("m",), False, stage, "more nodes meet other jobs")
    yield Feature("1/(m*n*K)", ("m", "n", "K"), True, stage, "a short write is not averaged out")
    yield Feature("m/(m*n*K)", ("n", "K"), True, stage, "both")
