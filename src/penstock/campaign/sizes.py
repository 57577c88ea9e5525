"""How much of a study runs: a first look, minutes of it, or the size of its paper."""

from collections.abc import Mapping
from typing import Literal

Size = Literal["quick", "fast", "full"]
QUICK: Size = "quick"
FAST: Size = "fast"
FULL: Size = "full"

CAUTION: Mapping[Size, str] = {
    QUICK: "quick: too few workloads to judge claims by",
    FAST: "",
    FULL: "",
}
"""The warning at the top of every page of a size."""


def size_of(*, quick: bool, full: bool) -> Size:
    """Return the size that two flags select."""
    return FULL if full else QUICK if quick else FAST
