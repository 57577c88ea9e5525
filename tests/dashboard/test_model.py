"""The page's data after each answer of the controller."""

from pathlib import Path
from typing import Any

import pytest
from dashboard.watched_site import Visits
from playwright.sync_api import Page, Request, Route

import penstock.live.http

FILES = Path(penstock.live.http.__file__).parent / "page"
APPLY = """async (answers) => {
  const { Model } = await import("/assets/model.js");
  const model = new Model();
  return answers.map(({ jobs = [], stretches = [], ...head }) => {
    model.take({ kind: "begin", head: { window: 900, gone: [], ...head } });
    model.take({ kind: "jobs", rows: jobs.map((id) => ({ id, state: "running" })) });
    const between = [...model.jobs.keys()];
    model.take({ kind: "stretches", rows: stretches });
    model.take({ kind: "end" });
    return { between, jobs: [...model.jobs.keys()], lanes: [...model.lanes.keys()],
             stretches: [...model.stretches("a")] };
  });
}"""
"""Return the data after each of several answers."""


@pytest.fixture
def page(visit: Visits) -> Page:
    """A page with the dashboard's files, and no site behind it."""
    page = visit("about:blank", wait=False)

    def serve(route: Route, request: Request) -> None:
        name = request.url.rpartition("/")[2]
        route.fulfill(
            content_type="text/javascript" if name else "text/html",
            body=(FILES / name).read_text() if name else "<!doctype html>",
        )

    page.context.route("http://127.0.0.1/**", serve)
    page.goto("http://127.0.0.1/")
    return page


def apply(page: Page, *answers: dict[str, Any]) -> list[dict[str, Any]]:
    states: list[dict[str, Any]] = page.evaluate(APPLY, list(answers))
    return states


def whole(*stretches: list[Any], now: float = 1000.0) -> dict[str, Any]:
    return {"whole": True, "now": now, "jobs": ["a"], "stretches": list(stretches)}


def delta(now: float, *stretches: list[Any], **fields: Any) -> dict[str, Any]:
    return {"whole": False, "now": now, "stretches": list(stretches), **fields}


def test_an_open_interval_that_is_no_longer_sent_disappears(page: Page) -> None:
    """A phase too small to be sent, or a wait of no length, has no end that would be sent."""
    states = apply(page, whole(["a", "wait", 990.0, None, 0.0]), delta(1001.0), delta(1002.0))
    assert states[0]["stretches"] == [["wait", 990, None, 0]]
    assert states[1]["stretches"] == [["wait", 990, 1000, 0]]  # it may have ended during the answer
    assert states[2]["stretches"] == []


def test_an_end_during_an_answer_comes_with_the_next_one(page: Page) -> None:
    last = ["a", "io", 990.0, 1000.4, 0.5]
    *_, end = apply(page, whole(["a", "io", 990.0, None, 0.5]), delta(1001.0), delta(1002.0, last))
    assert end["stretches"] == [["io", 990, 1000.4, 0.5]]


def test_an_open_interval_replaces_another(page: Page) -> None:
    *_, end = apply(
        page,
        whole(["a", "wait", 990.0, None, 0.0]),
        delta(1001.0, ["a", "wait", 990.0, 1000.5, 0.0], ["a", "io", 1000.5, None, 1.0]),
        delta(1002.0, ["a", "io", 1000.5, None, 0.7]),
    )
    assert end["stretches"] == [["wait", 990, 1000.5, 0], ["io", 1000.5, None, 0.7]]


def test_old_intervals_are_removed_behind_an_open_one(page: Page) -> None:
    old = [["a", "io", 2.0 + k, 2.5 + k, 1.0] for k in range(50)]
    goes_on = ["a", "would-wait", 1.0, None, 0.0]
    states = apply(page, whole(goes_on, *old, now=60.0), delta(2000.0, goes_on))
    assert len(states[0]["stretches"]) == 51
    assert states[1]["stretches"] == [["would-wait", 1, None, 0]]


def test_jobs_are_removed_when_an_answer_is_complete(page: Page) -> None:
    """Between two pieces of an answer every job that is drawn exists."""
    first = whole(["a", "io", 990.0, 991.0, 1.0])
    _, end = apply(page, first, delta(1001.0, jobs=["b"], gone=["a"]))
    assert end["between"] == ["a", "b"]
    assert end["jobs"] == ["b"]
    assert end["lanes"] == []
    _, back = apply(page, first, delta(1001.0, jobs=["a"], gone=["a"]))
    assert back["jobs"] == ["a"]


def test_unknown_times_are_neither_drawn_nor_described_as_computing(page: Page) -> None:
    """A job from 0 to 100 s whose history is known from 60 s on, and one whose is known from 0."""
    rectangles, texts = page.evaluate(
        """async () => {
          const { Gantt, paintLane } = await import("/assets/gantt.js");
          const { palette } = await import("/assets/palette.js");
          const drawn = [];
          const pen = { fillRect(x, y, width, height) {
            drawn.push([this.fillStyle === palette().deadHatch ? "unknown" : "line", x, width]);
          } };
          const lane = { began: 0, ended: null, state: "running", stretches: [], known: 60 };
          const range = { from: 0, to: 100, now: 100 };
          paintLane(pen, lane, 0, 20, 1000, range);
          paintLane(pen, { ...lane, known: undefined }, 0, 20, 1000, range);
          const texts = [];
          const readout = (text) => texts.push(text);
          const gantt = new Gantt({ label: "", lane: () => lane, look: () => ({}), readout });
          gantt.range = range;
          for (const x of [300, 700]) gantt.point("a", x, 1000);
          return [drawn, texts];
        }"""
    )
    assert rectangles == [["line", 600, 400], ["unknown", 0, 600], ["line", 0, 1000]]
    assert "a is unknown at" in texts[0]
    assert "a computes at" in texts[1]
