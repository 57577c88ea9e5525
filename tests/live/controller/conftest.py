"""A deployment with turns for every test that asks for one."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from live.controller.turn_deployment import Deployed, deployed


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Deployed]:
    with deployed(tmp_path) as site:
        yield site
