"""One browser per file of tests: while it is open, its thread has an event loop of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboard.watched_site import PATIENCE, Site, Visits, chromium
from playwright.sync_api import Browser, expect

from penstock.live.deployment import launcher

expect.set_options(timeout=1000 * PATIENCE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visits]:
    visits = Visits(browser)
    yield visits
    visits.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site that is not up yet."""
    site = Site(tmp_path)
    with site.jobs:
        yield site
    launcher.down(site.state)
