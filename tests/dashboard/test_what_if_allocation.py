"""What-if of allocation and placement policies from the page: real jobs, of which one is known."""

import json
import re
from collections.abc import Iterator

import pytest
from dashboard.test_what_if import expect_everything_inside_its_card
from dashboard.watched_site import WIDE, Site, Visits, finished, keep_both
from playwright.sync_api import Browser, Page, expect

from penstock.live.deployment import launcher

KEYS = ("utilization", "efficiency", "max_stretch", "io_slowdown", "min_yield", "makespan")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site that gave each job one I/O node; the curve of one of its two applications is known."""
    folder = tmp_path_factory.mktemp("site")
    curve = {"1": "40 MB/s", "2": "80 MB/s", "4": "160 MB/s"}
    known = {"applications": [{"application": "steep", "curve": curve}]}
    (folder / "curves.json").write_text(json.dumps(known))
    site = Site(folder)
    with site.jobs:
        site.serve(
            *("--allocation", "one", "--set", "placement.policy=greedy-non-clairvoyant"),
            *("--curves", str(folder / "curves.json")),
            policy="fair-share",
            io_nodes=4,
            emulate="targets=4,rate=40MiB/s",
        )
        finished([site.phases("steep", 0.3, 12, 3), site.phases("unknown", 0.3, 8, 3)])
        yield site
    launcher.down(site.state)


@pytest.fixture
def page(recorded: Site, browser: Browser) -> Iterator[Page]:
    visits = Visits(browser)
    yield visits(recorded.url, "what-if")
    visits.close()


def simulate(page: Page, kind: str, first: str, second: str) -> None:
    expect(page.get_by_role("button", name="Simulate both")).to_be_enabled()
    page.get_by_label("Compare").select_option(kind)
    page.get_by_label("Policy", exact=True).select_option(first)
    page.get_by_label("Other policy").select_option(second)
    page.get_by_role("button", name="Simulate both").click()
    expect(page.locator("table.metrics")).to_be_visible()


def result(page: Page) -> dict[str, object]:
    id = page.url.rpartition("/")[2]
    answer = page.evaluate(f"fetch('/v1/what-if/{id}').then((answer) => answer.json())")
    return dict(answer["result"])


def test_allocation_policies_and_what_they_do_not_know(page: Page) -> None:
    expect(page.get_by_role("button", name="Simulate both")).to_be_enabled()
    page.get_by_label("Compare").select_option("allocation")
    expect(page.get_by_label("With allocation")).to_be_hidden()
    expect(page.get_by_label("Policy", exact=True)).to_have_value("one")  # what ran
    expect(page.get_by_label("Other policy")).to_have_value("mckp")
    simulate(page, "allocation", "mckp", "own")
    expect(page.locator(".comparison .card h2").first).to_have_text("Model check")
    expect(page.locator(".verdict")).to_contain_text("one ran (mode enforce)")
    heads = page.locator("table.metrics th")
    expect(heads).to_have_count(4)
    expect(heads.nth(1)).to_have_text("one, which ran")
    known = page.locator("table.known-table tbody tr")
    expect(known).to_have_count(3)
    mckp = known.filter(has_text="mckp").locator("td")
    expect(mckp.nth(1)).to_have_text("curve")
    expect(mckp.nth(2)).to_have_text("curve of 1 job")
    expect(mckp.nth(3)).to_have_text("1 job")
    expect(known.filter(has_text="one, which ran").locator("td").nth(1)).to_have_text("nothing")
    expect(page.locator(".area-known .note")).to_contain_text("1 job without a known curve")
    expect_what_the_result_says(page)
    expect_it_fits(page, "what-if-allocation")
    page.reload()  # the address leads to the result
    expect(page.locator("table.known-table")).to_be_visible()


def expect_it_fits(page: Page, name: str) -> None:
    """Long names of policies stay in their cards, on a wide and on a narrow screen."""
    for width, height in (WIDE, (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        expect_everything_inside_its_card(page)
        keep_both(page, f"{name}-{width}")


def expect_what_the_result_says(page: Page) -> None:
    """Nothing within the model error is called a gain, or coloured."""
    shown = result(page)
    policies, ran = dict(shown["policies"]), shown["ran"]  # type: ignore[call-overload]
    others = [name for name in policies if name != ran]
    for row, key in zip(page.locator("table.metrics tbody tr").all(), KEYS, strict=True):
        for column, name in enumerate(others, 2):
            cell, policy = row.locator("td").nth(column), policies[name]
            beyond, gain = policy["beyond_model_error"][key], policy["gain"][key]
            kind = "" if not beyond else "wins" if gain > 0 else "worse"
            expect(cell).to_have_class(f"num {kind}")
            if not beyond:
                expect(cell).to_contain_text("within error")


def test_placement_policies_with_the_allocation_that_ran(page: Page) -> None:
    expect(page.get_by_role("button", name="Simulate both")).to_be_enabled()
    page.get_by_label("Compare").select_option("placement")
    expect(page.get_by_label("With allocation")).to_have_value("one")
    expect(page.get_by_label("Policy", exact=True)).to_have_value("greedy-non-clairvoyant")
    simulate(page, "placement", "random", "greedy-clairvoyant")
    heads = page.locator("table.metrics th").all_text_contents()[1:]
    assert heads[0] == "one + greedy-non-clairvoyant, which ran"
    assert set(heads[1:]) == {"one + random", "one + greedy-clairvoyant"}
    assert result(page)["ran"] == "one + greedy-non-clairvoyant"
    expect_it_fits(page, "what-if-placement")


def test_a_policy_that_cannot_be_simulated_is_named_with_the_reason(page: Page) -> None:
    """Without site.nodes, static does not know how large a part of the site a job is."""
    simulate(page, "allocation", "one", "static")
    expect(page.locator(".skipped li")).to_have_text(
        re.compile("static is not simulated: .*site.nodes")
    )
    expect(page.locator("table.metrics th")).to_have_count(2)


def test_sharing_policies_have_no_table_of_allocations(page: Page) -> None:
    simulate(page, "sharing", "fair-share", "set-10")
    expect(page.locator("table.metrics th")).to_have_count(3)
    expect(page.locator("table.known-table")).to_have_count(0)
