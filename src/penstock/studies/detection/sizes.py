"""Which other observations would have request sizes go with the class, as in Fig. 3.2.

The thesis' runs have the same sizes in every class, and so have ours: as clients issue them, sizes
go with no class. Each of these changes one thing in our observations.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from statistics import fmean

from penstock.learn.detection.features import THESIS_ORDER, correlations
from penstock.learn.detection.samples import Sample
from penstock.model.observation import PATTERNS

STRIPE = 64 * 2**10
"""Of the thesis' file system (3.1)."""
RUNS, PER_RUN, KEPT = 1_008, 40, 40_240
"""3.2: 40 observations of each of 1,008 runs would be 80 more than it has."""
SIZES = ("smallest", "size")
ORDERS = (THESIS_ORDER, PATTERNS)
"""Of the list in 3.2, and of Table 3.2."""
OWN_FILE, LARGE = "file-per-process", 256 * 2**10


def all_intervals(samples: Sequence[Sample]) -> list[Sample]:
    """Return as many observations of a run as it has intervals: a slow run has more."""

    def run(one: Sample) -> tuple[str, str, int, int, int]:
        return one.pattern, one.operation, one.request, one.processes, one.io_nodes

    by_run = [list(some) for _, some in groupby(sorted(samples, key=run), key=run)]
    # All runs of a number of processes move the same; a rate is that of all their I/O nodes.
    rates = [
        some[0].io_nodes * fmean(one.observation.moved / one.observation.seconds for one in some)
        for some in by_run
    ]
    return [
        one
        for some, rate in zip(by_run, rates, strict=True)
        for one in some
        for _ in range(round(max(rates) / rate))
    ]


def some_missing(samples: Sequence[Sample]) -> list[Sample]:
    """Leave out as large a part as the thesis' data lack, all where it matters most."""
    part = 1 - KEPT / (RUNS * PER_RUN)
    left_out = math.ceil(part * len(samples))
    large = [one for one in samples if one.pattern == OWN_FILE and one.request == LARGE]
    gone = set(map(id, large[:left_out]))
    return [one for one in samples if id(one) not in gone]


def cut_at_stripes(samples: Iterable[Sample]) -> list[Sample]:
    """Cut requests into stripes, as a client of the file system does."""
    return [_times(one, min(1, STRIPE / one.observation.largest)) for one in samples]


def joined(patterns: Sequence[str]) -> Callable[[Iterable[Sample]], list[Sample]]:
    """Return a function that joins the requests of some classes in pairs."""
    return lambda samples: [_times(one, 2.0 if one.pattern in patterns else 1.0) for one in samples]


def _times(one: Sample, factor: float) -> Sample:
    """Return an observation of the same number of requests, each larger by a factor."""
    seen = one.observation
    changed = replace(
        seen,
        smallest=round(seen.smallest * factor),
        largest=round(seen.largest * factor),
        asked=round(seen.asked * factor),
    )
    return replace(one, observation=changed)


EXCLUDED: Mapping[str, Callable[[Sequence[Sample]], list[Sample]]] = {
    "with the observations that the thesis' data lack left out, all of large requests to files per "
    "process": some_missing,
    "with all intervals of a run, more of runs that are slow on our disks": all_intervals,
    "with requests cut at stripes of 64 KiB": cut_at_stripes,
    "with contiguous requests joined in pairs": joined(("file-per-process", "shared-contiguous")),
}
REMAINS = joined(("shared-contiguous", "shared-strided"))


def coefficients(samples: Sequence[Sample]) -> list[float]:
    """Return the weaker coefficient of the two sizes, for each order of the classes."""
    by_order = ({one.feature: one.ordered for one in correlations(samples, o)} for o in ORDERS)
    return [min(by_name[name] for name in SIZES) for by_name in by_order]
