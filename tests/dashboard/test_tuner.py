"""The tuner's view: the chosen values over time, and what was learned of each."""

import re
from pathlib import Path

from dashboard.watched_site import Site, Visits, finished, keep_both
from playwright.sync_api import expect

WRITES = "for f in a b c d; do dd if=/dev/zero of=$f bs=64k count=900 2>/dev/null & done; wait"
"""Four files at once, for seconds: of one process alone an I/O node cannot tell the pattern."""


def test_without_tuning_the_view_shows_how_to_start_it(site: Site, visit: Visits) -> None:
    site.serve()
    page = visit(site.url, "tuner")
    expect(page.get_by_text("Nothing is tuned.")).to_be_visible()
    expect(page.get_by_text("--tune window")).to_be_visible()


def test_chosen_values_and_what_was_learned(site: Site, visit: Visits) -> None:
    site.serve(
        *("--scheduler", "twins", "--tune", "window"),
        policy="set-10",
        emulate="disks",
    )
    page = visit(site.url, "tuner")
    expect(page.locator(".area-learned")).to_contain_text("Nothing yet.")
    run = site.run("writer", "sh", "-c", WRITES)
    chart = page.locator("svg.chart")
    expect(chart.first).to_have_attribute(
        "aria-label", re.compile(r"window of I/O node 0: [\d.]+ ms now, \d+ choices?")
    )
    assert chart.first.locator(".tried, .known").count() >= 1
    learned = page.locator(".area-learned tbody tr")
    expect(learned.first).to_contain_text("window")
    expect(page.locator(".area-learned")).to_contain_text(re.compile(r"[\d.]+ MiB/s"))
    expect(page.locator(".area-learned")).to_contain_text("best so far")
    keep_both(page, "tuner")
    finished([run])


def test_a_tuner_that_cannot_be_shown_is_named(site: Site, visit: Visits, tmp_path: Path) -> None:
    file = tmp_path / "other.py"
    file.write_text(
        "from penstock.policies.tuning.ucb1 import Ucb1\n\n\n"
        "class Other(Ucb1):\n"
        "    def learned(self):\n"
        "        return {'contexts': 3}\n"
    )
    options = ("--scheduler", "twins", "--tune", "window", "--set", f"tuning.policy={file}:Other")
    site.serve(*options, policy="set-10", emulate="disks")
    page = visit(site.url, "tuner")
    text = "What the tuner of window learned cannot be shown; see the controller's log."
    expect(page.locator(".area-learned")).to_contain_text(text)
