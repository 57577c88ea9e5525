"""The tuner's view: nothing where nothing tunes; else arms over time, and what was learnt."""

import re

from dashboard.watched_site import Site, Visits, finished, keep_both
from playwright.sync_api import expect

WRITES = "for k in 1 2 3 4 5 6 7 8 9; do dd if=/dev/zero of=f bs=64k count=60 2>/dev/null; done"


def test_where_nothing_tunes_it_says_how(site: Site, visit: Visits) -> None:
    site.serve()
    page = visit(site.url, "tuner")
    expect(page.get_by_text("Nothing tunes here.")).to_be_visible()
    expect(page.get_by_text("--tune window")).to_be_visible()


def test_arms_over_time_and_what_was_learnt(site: Site, visit: Visits) -> None:
    site.serve(
        *("--scheduler", "twins", "--tune", "window"),
        policy="set-10",
        emulate="disks",
    )
    page = visit(site.url, "tuner")
    expect(page.locator(".area-learnt")).to_contain_text("Nothing yet.")
    run = site.run("writer", "sh", "-c", WRITES)
    chart = page.locator("svg.chart")
    expect(chart.first).to_have_attribute(
        "aria-label", re.compile(r"window of I/O node 0: [\d.]+ ms now, \d+ choices?")
    )
    assert chart.first.locator(".tried, .known").count() >= 1
    learnt = page.locator(".area-learnt tbody tr")
    expect(learnt.first).to_contain_text("window")
    expect(page.locator(".area-learnt")).to_contain_text(re.compile(r"[\d.]+ MiB/s"))
    expect(page.locator(".area-learnt")).to_contain_text("best so far")
    keep_both(page, "tuner")
    finished([run])
