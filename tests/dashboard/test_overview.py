"""The overview of a real site shows what its jobs do, as they do it."""

import os
import re
import signal

from dashboard.watched_site import Site, Visits, keep_both, lane
from playwright.sync_api import Page, expect

COLOURS = """(name) => {
  const canvas = document.querySelector(".area-gantt .rows-canvas");
  const pen = canvas.getContext("2d");
  const colour = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const [red, green, blue] = [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16));
  const rows = [...document.querySelectorAll(".area-gantt .row-label:not([hidden])")];
  const scale = devicePixelRatio;
  const high = rows[0].offsetHeight;
  return Object.fromEntries(rows.map((row, k) => {
    const data = pen.getImageData(0, k * high * scale, canvas.width, (high - 1) * scale).data;
    let count = 0;
    for (let at = 0; at < data.length; at += 4) {
      const off = [red, green, blue].map((part, k) => Math.abs(data[at + k] - part));
      if (Math.max(...off) < 6) count += 1;
    }
    return [row.querySelector(".name").textContent, count];
  }));
}"""
"""The number of pixels of a colour in each lane."""


def pixels_of(page: Page, colour: str) -> dict[str, int]:
    pixels: dict[str, int] = page.evaluate(COLOURS, f"--{colour}")
    return pixels


def until_drawn(page: Page, colour: str, job: str, least: int) -> dict[str, int]:
    page.wait_for_function(
        f"([name, job, least]) => (({COLOURS})(name)[job] ?? 0) >= least",
        arg=[f"--{colour}", job, least],
    )
    return pixels_of(page, colour)


def test_an_empty_site_shows_how_to_start_and_then_its_first_job(site: Site, visit: Visits) -> None:
    site.serve(mode="observe")
    page = visit(site.url)
    expect(page.get_by_text("No job yet.")).to_be_visible()
    expect(page.get_by_text("penstock run --state STATE")).to_be_visible()
    expect(page.locator(".chips")).to_contain_text("emulated storage")
    expect(page.locator(".chips")).to_contain_text("anonymous")
    expect(page.locator(".chips")).to_contain_text("observe")
    expect(page.locator(".area-waits")).to_contain_text("The mode is observe")
    title = "Phases and shares, as exclusive-fcfs would grant"
    expect(page.get_by_role("heading", name=title)).to_be_visible()
    keep_both(page, "overview-empty")
    first = site.obedient("first")
    expect(lane(page, "first.1")).to_be_visible()
    expect(page.get_by_text("No job yet.")).to_be_hidden()
    first.finish()
    expect(lane(page, "first.1")).to_contain_text("ended")


def test_transferring_and_waiting_jobs_are_shown(site: Site, visit: Visits) -> None:
    site.serve()
    first, large = site.obedient("first"), site.obedient("large")
    first.do("begin")
    page = visit(site.url)
    expect(lane(page, "first.1")).to_contain_text("100%")
    site.held(first, large)
    expect(lane(page, "large.2")).to_contain_text("waits")
    queue = page.locator(".queue")
    expect(queue.locator("h3")).to_contain_text("behind first.1")
    text = re.compile(r"large\.2\s*has waited [\d.]+ m?s, at most [\d.]+ s more")
    expect(queue.locator("li")).to_have_text(text)
    expect(page.locator(".figures")).to_contain_text("transferring1waiting1")
    waits = until_drawn(page, "wait", "large.2", 20)
    assert waits["first.1"] == 0
    transfers = until_drawn(page, "io", "first.1", 20)
    assert transfers["large.2"] == 0
    expect(lane(page, "large.2", ".area-allocation")).to_be_visible()
    page.locator(".area-allocation .row-label", has_text="large.2").hover()
    expect(page.locator(".readout").first).to_contain_text("large.2 may use I/O node")
    keep_both(page, "overview-waits")
    first.do("end")
    assert large.answer() == "write"
    expect(queue).to_have_count(0)
    expect(page.locator(".area-waits")).to_contain_text("No job waits.")
    until_drawn(page, "io", "large.2", 5)
    for job in (first, large):
        job.finish()


def test_transfers_are_in_the_heat_map_and_among_the_top_jobs(site: Site, visit: Visits) -> None:
    site.serve(policy="set-10")
    page = visit(site.url)
    heat = page.locator("canvas.heat")
    expect(heat).to_have_attribute("aria-label", re.compile("0 MiB/s"))
    runs = [site.phases("short", 0.3, 4, 8), site.phases("long", 1.0, 30, 2)]
    expect(heat).to_have_attribute("aria-label", re.compile(r"move [1-9][\d.]* MiB/s now, most"))
    expect(page.locator(".top-jobs")).to_contain_text(re.compile(r"short\.\d[\d.]* MiB/s"))
    expect(page.locator(".top-users")).to_contain_text("shown with a token")
    expect(page.locator(".heat-scale")).to_contain_text(re.compile(r"[1-9][\d.]* MiB/s"))
    for run in runs:
        run.communicate(timeout=60)
        assert run.returncode == 0
    page.keyboard.press("t")  # all pictures as tables
    rows = page.locator(".area-heat .as-table tbody tr")
    expect(rows.first).to_be_visible()
    assert re.search(r"[1-9][\d.]* MiB/s", " ".join(rows.all_inner_texts()))
    expect(page.locator(".area-gantt .as-table")).to_contain_text("short.")
    expect(page.locator(".area-allocation .as-table")).to_contain_text("I/O nodes")
    keep_both(page, "overview-tables")


def test_lanes_can_be_filtered_ordered_and_paused(site: Site, visit: Visits) -> None:
    site.serve(mode="observe")
    jobs = [site.obedient(name) for name in ("alpha", "beta", "gamma")]
    page = visit(site.url)
    names = page.locator(".area-gantt .row-label:not([hidden]) .name")
    expect(names).to_have_text(["gamma.3", "beta.2", "alpha.1"])
    page.get_by_label("Order of lanes").select_option("name")
    expect(names).to_have_text(["alpha.1", "beta.2", "gamma.3"])
    page.get_by_label("Show jobs whose name").fill("ET")
    expect(names).to_have_text(["beta.2"])
    expect(page.locator(".area-gantt .card-head")).to_contain_text("1 of 3 jobs")
    page.get_by_label("Show jobs whose name").fill("")
    jobs[0].finish()
    expect(lane(page, "alpha.1")).to_contain_text("ended")
    page.get_by_label("ended").uncheck()
    expect(names).to_have_text(["beta.2", "gamma.3"])
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_have_attribute("aria-pressed", "true")
    for job in jobs[1:]:
        job.finish()
    expect(page.locator(".figures")).to_contain_text("running0")  # the header is not paused
    expect(names).to_have_text(["beta.2", "gamma.3"])
    assert "ended" not in lane(page, "beta.2").inner_text()
    expect(lane(page, "beta.2", ".area-allocation")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(names).to_have_count(0)
    expect(lane(page, "beta.2", ".area-allocation")).to_have_count(0)


def test_an_io_node_that_does_not_answer_is_marked(site: Site, visit: Visits) -> None:
    site.serve()
    page = visit(site.url)
    labels = page.locator(".heat-label")
    expect(labels).to_have_text(["I/O node 0", "I/O node 1", "direct"])
    pid = site.status().io_nodes[1].pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        expect(labels.nth(1)).to_have_text("I/O node 1 (not answering)")
    finally:
        os.kill(pid, signal.SIGCONT)
    expect(labels.nth(1)).to_have_text("I/O node 1")
