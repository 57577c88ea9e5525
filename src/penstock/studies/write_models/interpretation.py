"""What the chosen lasso models say of the machines (Tables II, III and VI)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from penstock.learn.write_models import features
from penstock.learn.write_models.features import Feature
from penstock.learn.write_models.machine import Machine, Stage, load
from penstock.learn.write_models.parameters import Floats, parameters
from penstock.learn.write_models.samples import Sample
from penstock.report.findings import Claim
from penstock.sim.evaluate.write_path import WritePath
from penstock.sim.evaluate.write_samples import TEST_SCALES
from penstock.studies.table import each
from penstock.studies.texts import claims_of
from penstock.studies.verdicts import over
from penstock.studies.write_models.cells import SLOWED
from penstock.studies.write_models.comparison import Compared

claim = claims_of("write-models")

MB = 1e6
BYTES = ("K", "s_ost")
"""Parameters in bytes, where the paper has MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedModel:
    """A lasso model of Table VI: seconds, with bursts in MB."""

    scales: str
    intercept: float
    coefficients: Mapping[tuple[str, ...], float]
    """Seconds per unit of the product of these parameters."""

    def seconds(self, values: Mapping[str, float]) -> float:
        """Return the time of a write with these parameters."""
        in_mb = {name: x / MB if name in BYTES else x for name, x in values.items()}
        return self.intercept + sum(
            coefficient * math.prod(in_mb[symbol] for symbol in symbols)
            for symbols, coefficient in self.coefficients.items()
        )

    @property
    def names(self) -> list[str]:
        """Return its features as they are printed."""
        return ["*".join(symbols) for symbols in self.coefficients]


LINK, BRIDGE, IO_NODE = ("s_l", "n", "K"), ("s_b", "n", "K"), ("s_io", "n", "K")
ROUTER = ("s_r", "n", "K")
TABLE_6: Mapping[str, PrintedModel] = {
    "cetus": PrintedModel(
        scales="32-128",
        intercept=0.902,
        coefficients={
            ("n",): 0.0864,
            LINK: 5.812e-4,
            BRIDGE: 4.301e-5,
            ("m", "n"): 2.646e-4,
            ("n", "K"): 0.0022,
            ("n_nsds",): 2.535e-4,
            IO_NODE: 5.167e-4,
            ("n_nsd",): 3.238e-6,
            (*LINK, *BRIDGE): 5.958e-13,
            (*BRIDGE, "n_nsds"): 2.97e-10,
        },
    ),
    "titan": PrintedModel(
        scales="16-128",
        intercept=1.7826,
        coefficients={
            ("K",): 3.485e-4,
            ("n_r",): -0.010,
            ROUTER: 2.91e-4,
            ("s_ost",): 8.963e-5,
            ("m", "n", "K"): 1.463e-6,
            ("n", "K"): 2.116e-4,
            ("n", "K", *ROUTER): 9.315e-11,
            (*ROUTER, "n_oss"): 1.925e-10,
        },
    ),
}
"""Table VI."""
KINDS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "cetus": {
        "metadata load": ("m*n", "n"),
        "skew inside the machine": ("s_l*n*K", "s_b*n*K", "s_io*n*K"),
        "resources of the file system": ("n_nsd", "n_nsds", "n_d", "n_s"),
    },
    "titan": {
        "aggregate load": ("m*n*K", "n*K", "K"),
        "skew inside the machine": ("s_r*n*K",),
        "resources of the machine": ("n_r", "m"),
    },
}
"""IV-C2: what dominates each machine, and the features that are of that kind."""
LEADING = (8, 4, 12)
"""How many features with the largest effects may be said to dominate; the paper does not say."""
PRINTED_FEATURES = {"cetus": 41, "titan": 30}
NEAR = 1.2
AS_IT_IS = "as it is"
NOT_IN_TABLES = "I/O node"
"""A stage that Tables II and III have no features of, though Table VI has one."""


def claims(one: Compared) -> Iterator[Claim]:
    """Yield the claims on one machine."""
    ours = [feature.name for feature in one.features]
    result, printed = one.best["lasso"].result, TABLE_6[one.machine]

    def dominating(most: int, kept: Sequence[str] = ours) -> dict[str, list[str]]:
        leading = [name for name in kept if "/" not in name][:most]
        return {
            kind: [name for name in leading if any(part in _parts(name) for part in names)]
            for kind, names in KINDS[one.machine].items()
        }

    kinds = dominating(LEADING[0])
    total = sum(one.slowest.values())
    slowest = {
        stage: count / total
        for stage, count in sorted(one.slowest.items(), key=lambda item: -item[1])
    }
    chosen = (
        f"trained on {', '.join(map(str, result.cell.scales))} nodes, lambda "
        f"{result.options['penalty']}: {', '.join(ours[: LEADING[0]])}"
    )
    yield claim(
        "table-vi-what-dominates",
        _listed(kinds),
        all(kinds.values()),
        readings=over(LEADING, "the first {:g}", lambda most: all(dominating(int(most)).values())),
        one=one.where,
        kinds=", ".join(kinds),
        slowest=each(slowest, "{} {:.0%}"),
        slow=(
            f"A lasso for the same machine with metadata {SLOWED} times as slow has: "
            f"{_listed(dominating(LEADING[0], one.slow_metadata))}. "
            if one.slow_metadata
            else ""
        ),
    )
    yield claim(
        "table-vi-load-skew-inside",
        f"{chosen} ({sum(name in printed.names for name in ours)} of all are the paper's)",
        bool(ours) and ours[0].startswith("s_"),
        one=one.where,
        scales=printed.scales,
        other=", ".join(printed.names),
    )
    ratios = _printed_over_simulated(one)
    ratio = ratios.pop(AS_IT_IS)
    yield claim(
        "table-vi-as-measurement",
        f"Table VI over simulated: median {ratio:.2f}",
        1 / NEAR <= ratio <= NEAR,
        one=one.where,
        near=NEAR,
        otherwise=each(ratios, "{} {:.2f}"),
    )
    machine = load(one.machine)
    listed, distinct = features.all_features(machine), features.features(machine)
    ways = _other_counts(listed, distinct)
    same = [words for words, count in ways.items() if count == PRINTED_FEATURES[one.machine]]
    yield claim(
        "iii-b-number-of-features",
        f"{len(listed)} listed, {len(distinct)} distinct",
        len(distinct) == PRINTED_FEATURES[one.machine],
        one=one.where,
        printed=PRINTED_FEATURES[one.machine],
        ways=each(ways, "{}: {}", "; "),
        same=" and ".join(same) or "none of these",
    )


def _other_counts(listed: Sequence[Feature], distinct: Sequence[Feature]) -> dict[str, int]:
    """Return how many features there are by other ways of counting."""
    interference = sum(feature.stage == "interference" for feature in listed)
    return {
        f"listed without the {NOT_IN_TABLES}'s": sum(f.stage != NOT_IN_TABLES for f in listed),
        "distinct, and those of interference once more": len(distinct) + interference,
    }


def _listed(kinds: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{kind}: {', '.join(names) or 'none'}" for kind, names in kinds.items())


def _parts(name: str) -> list[str]:
    """Return the factors of a crossed feature, or the feature."""
    return [part.strip("()") for part in name.split(")*(")]


def _printed_over_simulated(one: Compared) -> dict[str, float]:
    """Return the medians for the machine as it is, and with what Table VI says of it."""
    machine, printed = load(one.machine), TABLE_6[one.machine]
    samples = [sample for set_ in TEST_SCALES for sample in one.tests[set_]]
    ratios = np.array([printed.seconds(parameters(machine, s.write)) / s.seconds for s in samples])
    quiet = _quiet(machine, samples)
    measured = _with_capacities(machine, printed)
    others = {
        "with times of stages added": _one_after_the_other(machine),
        "with Table VI's capacities": measured,
        "with both": _one_after_the_other(measured),
    }
    return {AS_IT_IS: float(np.median(ratios))} | {
        words: float(np.median(ratios * quiet / _quiet(other, samples)))
        for words, other in others.items()
    }


def _quiet(machine: Machine, samples: Sequence[Sample]) -> Floats:
    """Return the seconds of the samples' writes without other jobs."""
    path = WritePath(machine, np.random.default_rng(0))
    return np.array([path.quiet(sample.write) for sample in samples])


def _one_after_the_other(machine: Machine) -> Machine:
    others = msgspec.structs.replace(machine.interference, overlap=1.0)
    return msgspec.structs.replace(machine, interference=others)


def _with_capacities(machine: Machine, printed: PrintedModel) -> Machine:
    """Return the machine with the bandwidths that coefficients of Table VI are the inverses of."""

    def stage(one: Stage) -> Stage:
        symbols: Mapping[str, tuple[str, ...]] = {
            "node": ("n", "K"),
            "group": (f"s_{one.symbol}", "n", "K"),
            "network": ("m", "n", "K"),
            "target": (f"s_{one.symbol}",),
        }
        coefficient = printed.coefficients.get(symbols.get(one.kind, ()))
        return msgspec.structs.replace(one, bandwidth=MB / coefficient) if coefficient else one

    return msgspec.structs.replace(machine, stage=tuple(map(stage, machine.stage)))
