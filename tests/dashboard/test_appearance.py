"""Light and dark, wide and narrow, without layout shifts, with enough contrast."""

import re

import pytest
from dashboard.watched_site import NARROW, Site, Visits, keep
from playwright.sync_api import Page, expect

CONTRAST = """() => {
  const parts = (text) => text.match(/[0-9.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const back = (at) => {
    for (; at; at = at.parentElement) {
      const colour = parts(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  const low = [];
  for (const at of document.querySelectorAll("body *")) {
    const own = [...at.childNodes].some((n) => n.nodeType === 3 && n.data.trim() !== "");
    if (!own || at.closest("[disabled], .unseen, .skip, noscript, option")
        || at.getClientRects().length === 0) continue;
    const [a, b] = [light(parts(getComputedStyle(at).color)), light(back(at))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push(`${at.className || at.tagName}: ${at.textContent} ${ratio}`);
  }
  return low;
}"""
"""Texts with less contrast than WCAG AA requires."""
SHIFTS = """
window.shifts = [];
new PerformanceObserver((seen) => window.shifts.push(...seen.getEntries().map((e) => e.value)))
  .observe({ type: "layout-shift", buffered: true });
"""


def background(page: Page) -> str:
    colour: str = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    return colour


def test_light_and_dark(site: Site, visit: Visits) -> None:
    """By the system's preference, or as chosen; texts can be read in both."""
    site.serve()
    job, other = site.obedient("first"), site.obedient("large")
    site.held(job, other)
    light, dark = visit(site.url), visit(site.url, scheme="dark")
    assert background(light) != background(dark)
    for page in (light, dark):
        expect(page.locator(".queue")).to_be_visible()
        assert page.evaluate(CONTRAST) == []
    dark.keyboard.press("d")
    assert background(dark) == background(light)
    dark.reload()  # the chosen theme is set before the first paint
    assert background(dark) == background(light)
    dark.get_by_role("button", name="Light or dark").click()
    assert background(dark) != background(light)
    job.do("end")
    assert other.answer() == "write"
    for each in (job, other):
        each.finish()


@pytest.mark.parametrize("view", ["overview", "tuner", "what-if"])
def test_narrow_windows_scroll_one_way_only(site: Site, visit: Visits, view: str) -> None:
    site.serve()
    page = visit(site.url, view, size=NARROW)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    keep(page, f"{view}-narrow")


def test_nothing_jumps_while_jobs_come_and_go(site: Site, visit: Visits) -> None:
    site.serve()
    page = visit("about:blank", wait=False)
    page.add_init_script(SHIFTS)
    page.goto(site.url)
    expect(page.locator("#answer")).to_have_attribute("data-state", "live")
    page.evaluate("window.shifts.length = 0")
    jobs = [site.obedient(name) for name in ("a", "b", "c")]
    site.held(jobs[0], jobs[1])
    expect(page.locator(".queue")).to_be_visible()
    jobs[0].do("end")
    assert jobs[1].answer() == "write"
    for job in jobs:
        job.finish()
    expect(page.locator(".figures")).to_contain_text(re.compile("running0"))
    assert sum(page.evaluate("window.shifts")) < 0.02
