"""What paper write-models prints, to be held against."""

from collections.abc import Mapping

SETS = ("small", "medium", "large", "unconverged")
SHARES: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "cetus": {
        "small": (0.9964, 1.0),
        "medium": (0.7414, 0.908),
        "large": (0.7669, 0.9398),
        "unconverged": (0.4497, 0.6391),
    },
    "titan": {
        "small": (0.962, 0.9831),
        "medium": (0.9336, 0.9469),
        "large": (0.8242, 0.8425),
        "unconverged": (0.1278, 0.2056),
    },
}
"""Table VII: of each test set, within 0.2 and 0.3, by the chosen lasso model."""
BETTER: Mapping[str, tuple[float, float]] = {"cetus": (1.34, 52.6), "titan": (1.21, 1.62)}
"""IV-C1: base model's mean square error over the chosen one's, least and most."""
UNCONVERGED: Mapping[str, tuple[int, int]] = {"cetus": (169, 754), "titan": (180, 916)}
"""IV-A: of the samples on 200 nodes and more."""
GAINS: Mapping[str, tuple[float, float]] = {"cetus": (1.1, 0.824), "titan": (1.15, 0.716)}
"""Figure 7: a gain, and the part of samples that have it or more."""
FEATURES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "cetus": (
        "32-128",
        (
            "n",
            "s_l*n*K",
            "s_b*n*K",
            "m*n",
            "n*K",
            "n_nsds",
            "s_io*n*K",
            "n_nsd",
            "(s_b*n*K)*(s_l*n*K)",
            "(s_b*n*K)*(n_nsds)",
        ),
    ),
    "titan": (
        "16-128",
        (
            "K",
            "n_r",
            "s_r*n*K",
            "s_ost",
            "m*n*K",
            "n*K",
            "(n*K)*(s_r*n*K)",
            "(s_r*n*K)*(n_oss)",
        ),
    ),
}
"""Table VI: training scales and features of the chosen lasso models."""
