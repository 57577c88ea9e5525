"""How fast access patterns are recognised.

    python benchmarks/detection.py

The time that the shipped model takes for one observation, with features and checks: the median over
the shipped observations, one by one. The line ends with its bar and whether it is met; for
comparison the same model as scikit-learn evaluates it, one observation at a time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from penstock.learn.detection import features, model, samples, training

BAR = 50e-6
PASSES = 5
T = TypeVar("T")


def median(call: Callable[[T], object], each: Iterable[T]) -> float:
    taken = []
    for one in each:
        began = time.perf_counter()
        call(one)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def main() -> None:
    shipped = model.shipped()
    seen = [one.observation for one in samples.shipped()]
    ours = min(median(shipped.classify, seen) for _ in range(PASSES))
    known = samples.of_sizes(samples.shipped(), samples.TRAINED_ON)
    made = training.train(known, "network", shipped.features, seed=1).estimator
    rows = features.table(known[:200], shipped.features)
    peer = median(lambda row: made.predict_proba(row.reshape(1, -1)), list(rows))
    verdict = "met" if ours <= BAR else "NOT MET"
    print(f"one observation: {1e6 * ours:.1f} us (bar <= {1e6 * BAR:g} us: {verdict})")
    print(f"scikit-learn, the same kind of model: {1e6 * peer:.0f} us, {peer / ours:.0f} times")


if __name__ == "__main__":
    main()
