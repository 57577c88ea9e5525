"""What-if from the page: a real record of real jobs, two policies, side by side."""

import re

from dashboard.watched_site import WIDE, Site, Visits, finished, keep_both
from playwright.sync_api import Page, Route, expect


def record(site: Site) -> None:
    """Record jobs whose phases overlap."""
    site.serve(policy="exclusive-fcfs")
    finished([site.phases(name, 0.4, 6, 4) for name in ("a", "b")] + [site.phases("c", 0.8, 20, 2)])


def choose(page: Page, first: str, second: str) -> None:
    page.get_by_label("Policy", exact=True).select_option(first)
    page.get_by_label("Other policy").select_option(second)


def test_two_policies_on_a_real_record_side_by_side(site: Site, visit: Visits) -> None:
    record(site)
    page = visit(site.url, "what-if")
    expect(page.get_by_label("Record").locator("option")).to_have_text(
        re.compile(r"still being written, exclusive-fcfs, enforce, [\d.<]+ MiB")
    )
    expect(page.get_by_label("Policy", exact=True)).to_have_value("exclusive-fcfs")
    expect(page.get_by_label("Other policy")).to_have_value("set-10")
    choose(page, "exclusive-fcfs", "fair-share")
    page.get_by_role("button", name="Simulate both").click()
    metrics = page.locator("table.metrics")
    expect(metrics).to_be_visible()
    expect(page.locator(".comparison .card h2").first).to_have_text("Model check")
    expect(page.locator(".verdict")).to_contain_text("exclusive-fcfs ran (mode enforce)")
    expect(page.locator(".check-table th")).to_have_text(
        ["", "recorded", "exclusive-fcfs, simulated", "error"]
    )
    expect(page.locator(".check-table tbody tr")).to_have_count(6)
    expect(metrics.locator("th")).to_have_text(["", "exclusive-fcfs, which ran", "fair-share"])
    expect(metrics.locator("tbody tr")).to_have_count(6)
    expect_colours_beyond_the_model_error_only(page)
    expect(page.locator(".side-lanes h3")).to_have_text(
        ["recordedrecorded", "exclusive-fcfssimulated", "fair-sharesimulated"]
    )
    for lanes in page.locator(".side-lanes").all():
        expect(lanes.locator(".row-label:not([hidden])")).to_have_count(3)
        assert lanes.locator(".rows").bounding_box()["height"] < 4 * 28  # type: ignore[index]
    expect(page.locator(".area-metrics .chip.simulated")).to_be_visible()
    expect(page.locator(".area-changes .chip.simulated")).to_be_visible()
    page.locator(".side-lanes .rows").nth(1).focus()
    page.keyboard.press("ArrowRight")
    readout = page.locator(".area-side .readout")
    expect(readout).to_have_text(re.compile(r"(transfers|waits)"))
    keep_both(page, "what-if")
    for size in (WIDE, (390, 844)):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        expect_everything_inside_its_card(page)
        keep_both(page, f"what-if-{size[0]}")
    page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
    address = page.url
    page.reload()  # the result is kept, and its address leads to it
    expect(metrics).to_be_visible()
    assert page.url == address


def expect_colours_beyond_the_model_error_only(page: Page) -> None:
    """The page colours what the result says exceeds the error: at the better values, or none."""
    id = page.url.rpartition("/")[2]
    result = page.evaluate(f"fetch('/v1/what-if/{id}').then((a) => a.json())")["result"]
    other = result["policies"]["fair-share"]
    keys = ("utilization", "efficiency", "max_stretch", "io_slowdown", "min_yield", "makespan")
    beyond = [other["beyond_model_error"][key] for key in keys]
    wins = [b and other["gain"][key] > 0 for b, key in zip(beyond, keys, strict=True)]
    for row, exceeds, better in zip(
        page.locator("table.metrics tbody tr").all(), beyond, wins, strict=True
    ):
        assert row.locator("td.wins").count() == better
        assert row.locator("td.wins, td.worse").count() == exceeds
        assert row.get_by_text("within error").count() == (not exceeds)
    jobs = [each["job"] for kind in ("gain", "lose") for each in other["jobs"][kind]]
    assert page.locator(".change tbody tr td:first-child").all_text_contents() == jobs
    expect_marks_at_the_better_values(page)


def expect_marks_at_the_better_values(page: Page) -> None:
    """The mark is at the higher utilization, and at the lower stretch."""
    rows = page.evaluate(
        """() => [...document.querySelectorAll("table.metrics tbody tr")].map((row) => {
          const cells = [...row.cells];
          const value = (cell) => parseFloat(cell.querySelector("span").textContent);
          return { higher: cells[0].textContent.includes("higher is better"),
                   values: cells.slice(1).map(value),
                   wins: cells.slice(1).map((cell) => cell.classList.contains("wins")) };
        })"""
    )
    for row in rows:
        first, second = row["values"]
        if True in row["wins"] and first != second:
            best = max(first, second) if row["higher"] else min(first, second)
            assert row["values"][row["wins"].index(True)] == best


def expect_everything_inside_its_card(page: Page) -> None:
    """Bars once ran over the next column's names, and a table out of its card."""
    outside = page.evaluate(
        """() => {
          const wrong = [];
          const over = (each, edge) => {
            const box = each.getBoundingClientRect();
            return box.width > 0 && box.right > edge + 0.5;
          };
          const check = (inside, selector) => {
            const edge = inside.getBoundingClientRect().right;
            for (const each of inside.querySelectorAll(selector)) {
              if (over(each, edge)) wrong.push(each.outerHTML.slice(0, 200));
            }
          };
          for (const card of document.querySelectorAll(".what .card")) check(card, "*:not(option)");
          for (const column of document.querySelectorAll(".change")) check(column, "td, .gauge");
          if (document.documentElement.scrollWidth > innerWidth) wrong.push("the page scrolls");
          return wrong;
        }"""
    )
    assert outside == []


def test_a_simulation_whose_start_takes_long_is_not_asked_about_before(
    site: Site, visit: Visits
) -> None:
    """Its id was not known yet, and the page said 'no longer kept'."""
    site.serve(policy="fair-share")
    finished([site.phases("a", 0.3, 4, 2)])
    page = visit(site.url, "what-if")
    expect(page.get_by_role("button", name="Simulate both")).to_be_enabled()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.context.route("**/v1/what-if", hold)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    with page.expect_request("**/v1/what-if"):
        page.get_by_role("button", name="Simulate both").click()
    page.keyboard.press("1")
    page.keyboard.press("4")  # shown again, it would ask for the state
    expect(page.locator(".what-state")).to_have_text("Starting the simulation.")
    expect(page.get_by_role("button", name="Cancel")).to_be_disabled()
    assert not [url for url in requests if "/v1/what-if/" in url]
    held.pop().continue_()
    expect(page.locator("table.metrics")).to_be_visible()


def test_wrong_input_is_reported_and_nothing_hangs(site: Site, visit: Visits) -> None:
    site.serve(policy="fair-share")
    page = visit(site.url, "what-if")
    expect(page.locator(".what-state")).to_contain_text("There is no record yet")
    expect(page.get_by_role("button", name="Simulate both")).to_be_disabled()
    finished([site.phases("a", 0.3, 4, 2)])
    expect(page.get_by_role("button", name="Simulate both")).to_be_enabled()  # it looks again
    choose(page, "set-10", "set-10")
    page.get_by_role("button", name="Simulate both").click()
    expect(page.locator(".what-state")).to_have_text("Choose two different policies.")
    choose(page, "set-10", "fair-share")
    page.get_by_label("Window", exact=True).fill("never")
    page.get_by_role("button", name="Simulate both").click()
    expect(page.locator(".what-state")).to_have_text(
        "window 'never' is not BEGIN:END, counted from the beginning of the record, "
        "for example 9 h:17 h."
    )
    expect(page.get_by_label("Window", exact=True)).to_have_attribute(
        "placeholder", re.compile("9 h:17 h")
    )
    expect(page.get_by_role("button", name="Simulate both")).to_be_enabled()
    page.get_by_label("Window", exact=True).fill("")
    page.get_by_role("button", name="Simulate both").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".what-state")).to_have_text("Cancelled. Nothing was changed.")
    expect(page.get_by_role("button", name="Cancel")).to_be_disabled()
    page.get_by_role("button", name="Simulate both").click()  # and again, now to its end
    expect(page.locator("table.metrics")).to_be_visible()
    page.goto(f"{site.url}/#what-if/no-such")
    expect(page.locator(".what-state")).to_contain_text("no longer kept")
