"""Which worker of pytest-xdist runs what: a file together, pages apart, the longest first."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

ALONE = (
    "tests/chaos/",
    "tests/docs/test_commands.py::test_commands[",
    "tests/native/",
)
"""Tests that share nothing with the others of their file."""
LONGEST = (
    "tests/native/",
    "live-validation.md",
    "tests/distribution/test_wheel.py",
    "tests/cli/test_reproduce_all.py",
    "tests/chaos/",
    "tests/docs/test_commands.py::test_commands[",
    "tests/hosts/",
    "tests/campaign/test_on_dask.py",
    "tests/live/controller/test_turns_live.py",
    "tests/dashboard/",
    "tests/slurm/",
    "tests/studies/",
)
"""Parts of the names of tests that are to begin first, in this order."""


def unit_of(test: str) -> str:
    """Return the name of what one worker runs as a whole: a file, or one test."""
    return test if test.startswith(ALONE) else test.split("::", 1)[0]


def place_of(unit: str) -> int:
    """Return the place of a unit in the order in which units begin."""
    places = (place for place, part in enumerate(LONGEST) if part in unit)
    return next(places, len(LONGEST))


class LongestFirst(LoadFileScheduling):  # type: ignore[misc]
    """Hands out units in the order in which `Plugin` has sorted the tests."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


class Plugin:
    """What `--dist loadfile` means here."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> LongestFirst | None:
        if config.getoption("dist") != "loadfile":
            return None
        config.option.loadscopereorder = False
        return LongestFirst(config, log)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        if hasattr(config, "workerinput"):
            items[:] = in_order(items)


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return tests by units, those that take longest first, else those with most tests."""
    sizes = Counter(unit_of(item.nodeid) for item in items)

    def key(item: pytest.Item) -> tuple[int, int]:
        unit = unit_of(item.nodeid)
        return place_of(unit), -sizes[unit]

    return sorted(items, key=key)
