"""How much of a study is run: a look at it, minutes of it, or all that its paper has."""

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
"""What every page of a size says before anything else."""


def chosen(*, quick: bool, full: bool) -> Size:
    """Return the size that two flags ask for."""
    return FULL if full else QUICK if quick else FAST
