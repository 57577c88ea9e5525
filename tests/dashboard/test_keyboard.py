"""Everything works by keyboard, with a visible focus; pictures have text alternatives."""

import re

from dashboard.watched_site import Site, Visits, focused
from playwright.sync_api import Page, expect

STRAY = """() => [...document.querySelectorAll("canvas, svg.chart")].filter((picture) =>
  picture.getAttribute("aria-hidden") !== "true" && !picture.getAttribute("aria-label")).length"""
"""The number of pictures without a text alternative."""


def has_outline(page: Page) -> bool:
    outlined: bool = page.evaluate(
        "() => getComputedStyle(document.activeElement).outlineStyle === 'solid'"
    )
    return outlined


def test_a_walk_through_all_views(site: Site, visit: Visits) -> None:
    site.serve()
    first, second = site.obedient("first"), site.obedient("second")
    first.do("write 4")
    second.do("write 4")
    page = visit(site.url)
    expect(page.locator(".area-gantt .row-label:not([hidden])")).to_have_count(2)
    every_stop(page)
    along_lanes(page)
    over_the_heat_map(page)
    between_views(page)
    keys_in_one_instant(page)
    typing(page)
    for job in (first, second):
        job.finish()


def every_stop(page: Page) -> None:
    """Tab reaches every control, in order, and shows the focus."""
    assert page.evaluate(STRAY) == 0
    stops = []
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            break  # after the last one: the browser itself
        stops.append(focused(page))
        assert has_outline(page), stops[-1]
    order = ["skip", "tab-overview", "theme", "help-button"]
    assert [name for name in stops if name in order] == order
    for control in ("Order of lanes", "Time shown", "Waiting jobs"):
        assert control in stops
    page.keyboard.press("?")
    help = page.get_by_role("dialog", name="Keys")
    expect(help).to_be_visible()
    page.keyboard.press("Escape")
    expect(help).to_be_hidden()


def along_lanes(page: Page) -> None:
    """Arrow keys go over lanes and along one; Enter opens its job."""
    page.keyboard.press("l")
    lanes = page.get_by_role("listbox", name="Jobs and their phases")
    expect(lanes).to_be_focused()
    selected = page.locator(".area-gantt [role=option][aria-selected=true]")
    expect(selected).to_contain_text("second.2")
    page.keyboard.press("ArrowDown")
    expect(selected).to_contain_text("first.1")
    assert lanes.get_attribute("aria-activedescendant") == selected.get_attribute("id")
    page.keyboard.press("ArrowLeft")
    readout = page.locator(".area-gantt .readout")
    expect(readout).to_have_text(re.compile(r"first\.1 transfers at a share of \d+%, "))
    expect(readout).to_have_attribute("aria-live", "polite")
    page.keyboard.press("Enter")
    expect(page.locator(".job-name")).to_have_text("first.1")
    expect(page.locator(".phases tbody tr")).to_have_count(1)
    assert page.evaluate(STRAY) == 0
    page.keyboard.press("Escape")


def over_the_heat_map(page: Page) -> None:
    page.locator("canvas.heat").focus()
    page.keyboard.press("ArrowLeft")
    readout = page.locator(".area-gantt .readout")
    expect(readout).to_have_text(re.compile(r"I/O node 0 at \d\d:\d\d:\d\d: [\d.<]+ MiB/s"))
    page.keyboard.press("ArrowDown")
    expect(readout).to_contain_text("I/O node 1")


def between_views(page: Page) -> None:
    for key, view in (("3", "tuner"), ("4", "what-if"), ("2", "job/first.1"), ("1", "overview")):
        page.keyboard.press(key)
        expect(page).to_have_url(re.compile(f"#{view}$"))
    tabs = page.get_by_role("tab")
    tabs.first.focus()
    page.keyboard.press("ArrowLeft")
    expect(tabs.last).to_be_focused()
    expect(tabs.last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowRight")
    expect(tabs.first).to_be_focused()


def keys_in_one_instant(page: Page) -> None:
    """A key acts on the view that the key before it chose, however fast they come."""
    page.keyboard.press("3")
    expect(page.locator(".area-gantt")).to_have_count(0)
    page.evaluate("""() => {
      for (const key of ["1", "/"])
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    }""")
    expect(page.get_by_label("Show jobs whose name")).to_be_focused()
    page.keyboard.press("Escape")


def typing(page: Page) -> None:
    """Where one types, keys are letters; elsewhere they act."""
    page.keyboard.press("/")
    page.keyboard.type("first 1?")
    expect(page.get_by_label("Show jobs whose name")).to_have_value("first 1?")
    expect(page.locator(".area-gantt .row-label:not([hidden])")).to_have_count(0)
    page.keyboard.press("Escape")
    before = page.get_by_label("Time shown").input_value()
    page.keyboard.press("-")
    assert int(page.get_by_label("Time shown").input_value()) > int(before)
    page.keyboard.press("p")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
