"""The thesis' own figures: J. L. Bez, Chapter 3, classes in the order of model.PATTERNS."""

from collections.abc import Mapping

from penstock.learn.detection.training import Kind

SENSITIVITY = (1.0, 0.9972, 0.9977)
SPECIFICITY = (1.0, 0.9988, 0.9986)
"""Table 3.2."""
LAYOUT: Mapping[int, tuple[float, float]] = {
    2: (0.99801, 0.99701),
    3: (0.99818, 0.99728),
    5: (0.99733, 0.99600),
}
"""Accuracy and kappa by mtry, Table 3.3."""
SPATIALITY: Mapping[int, tuple[float, float]] = {
    2: (0.99827, 0.99614),
    3: (0.99823, 0.99606),
    5: (0.99765, 0.99478),
}
"""Table 3.4."""
TRAIN: Mapping[Kind, float] = {"tree": 0.369, "forest": 364.505, "network": 54.177}
PREDICT: Mapping[Kind, float] = {"tree": 1.371e-3, "forest": 1.363e-3, "network": 9.825e-3}
"""Seconds, Table 3.5."""
VALIDATED: Mapping[Kind, float] = {"tree": 0.9989, "network": 1 - 286 / 54210}
"""Accuracy on sizes never seen, 3.2.1 and 3.2.3; the forest's is not told."""
