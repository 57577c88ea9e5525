"""What the chosen lasso models say of the machines (Tables II, III and VI)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.learn.write_models import features
from penstock.learn.write_models.machine import load
from penstock.learn.write_models.parameters import parameters
from penstock.model.write import Write
from penstock.report.findings import Claim
from penstock.sim.evaluate.write_samples import TEST_SCALES
from penstock.studies.table import each
from penstock.studies.texts import claims_of
from penstock.studies.verdicts import over
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


def claims(one: Compared) -> Iterator[Claim]:
    """Yield the claims on one machine."""
    ours = [feature.name for feature, _ in one.features]
    result, printed = one.best["lasso"].result, TABLE_6[one.machine]

    def dominating(most: int) -> dict[str, list[str]]:
        leading = [name for name in ours if "/" not in name][:most]
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
        "; ".join(f"{kind}: {', '.join(names) or 'none'}" for kind, names in kinds.items()),
        all(kinds.values()),
        readings=over(LEADING, "the first {:g}", lambda most: all(dominating(int(most)).values())),
        one=one.where,
        kinds=", ".join(kinds),
        slowest=each(slowest, "{} {:.0%}"),
    )
    yield claim(
        "table-vi-load-skew-inside",
        f"{chosen} ({sum(name in printed.names for name in ours)} of all are the paper's)",
        bool(ours) and ours[0].startswith("s_"),
        one=one.where,
        scales=printed.scales,
        other=", ".join(printed.names),
    )
    ratio = _printed_over_simulated(one)
    yield claim(
        "table-vi-as-measurement",
        f"Table VI over simulated: median {ratio:.2f}",
        1 / NEAR <= ratio <= NEAR,
        one=one.where,
        near=NEAR,
    )
    machine = load(one.machine)
    distinct, listed = len(features.features(machine)), len(features.all_features(machine))
    yield claim(
        "iii-b-number-of-features",
        f"{listed} listed, {distinct} distinct",
        distinct == PRINTED_FEATURES[one.machine],
        one=one.where,
        printed=PRINTED_FEATURES[one.machine],
    )


def _parts(name: str) -> list[str]:
    """Return the factors of a crossed feature, or the feature."""
    return [part.strip("()") for part in name.split(")*(")]


def _printed_over_simulated(one: Compared) -> float:
    machine, printed = load(one.machine), TABLE_6[one.machine]

    def seconds(write: Write) -> float:
        return printed.seconds(parameters(machine, write))

    samples = [sample for set_ in TEST_SCALES for sample in one.tests[set_]]
    return float(np.median([seconds(sample.write) / sample.seconds for sample in samples]))
