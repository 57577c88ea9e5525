"""What the page keeps of the controller's answers, piece by piece."""

from pathlib import Path
from typing import Any

import pytest
from dashboard.watched_site import Visits
from playwright.sync_api import Page, Request, Route

import penstock.live.http

FILES = Path(penstock.live.http.__file__).parent / "page"
TAKEN = """async (answers) => {
  const { Model } = await import("/assets/model.js");
  const model = new Model();
  return answers.map(({ jobs = [], stretches = [], ...head }) => {
    model.take({ kind: "begin", head: { window: 900, gone: [], ...head } });
    model.take({ kind: "jobs", rows: jobs.map((id) => ({ id, state: "running" })) });
    const amid = [...model.jobs.keys()];
    model.take({ kind: "stretches", rows: stretches });
    model.take({ kind: "end" });
    return { amid, jobs: [...model.jobs.keys()], lanes: [...model.lanes.keys()],
             stretches: [...model.stretches("a")] };
  });
}"""
"""What is known after each of several answers."""


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


def taken(page: Page, *answers: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate(TAKEN, list(answers))
    return found


def whole(*stretches: list[Any], now: float = 1000.0) -> dict[str, Any]:
    return {"whole": True, "now": now, "jobs": ["a"], "stretches": list(stretches)}


def delta(now: float, *stretches: list[Any], **more: Any) -> dict[str, Any]:
    return {"whole": False, "now": now, "stretches": list(stretches), **more}


def test_an_open_stretch_that_is_not_told_any_more_is_not_drawn_for_ever(page: Page) -> None:
    """A phase too small to be told, or a wait of no length, has no end that would be told."""
    told = taken(page, whole(["a", "wait", 990.0, None, 0.0]), delta(1001.0), delta(1002.0))
    assert told[0]["stretches"] == [["wait", 990, None, 0]]
    assert told[1]["stretches"] == [["wait", 990, 1000, 0]]  # its end may have come amid the answer
    assert told[2]["stretches"] == []


def test_an_end_that_came_amid_an_answer_is_told_by_the_next(page: Page) -> None:
    last = ["a", "io", 990.0, 1000.4, 0.5]
    *_, end = taken(page, whole(["a", "io", 990.0, None, 0.5]), delta(1001.0), delta(1002.0, last))
    assert end["stretches"] == [["io", 990, 1000.4, 0.5]]


def test_one_open_stretch_takes_the_place_of_another(page: Page) -> None:
    *_, end = taken(
        page,
        whole(["a", "wait", 990.0, None, 0.0]),
        delta(1001.0, ["a", "wait", 990.0, 1000.5, 0.0], ["a", "io", 1000.5, None, 1.0]),
        delta(1002.0, ["a", "io", 1000.5, None, 0.7]),
    )
    assert end["stretches"] == [["wait", 990, 1000.5, 0], ["io", 1000.5, None, 0.7]]


def test_old_stretches_are_forgotten_behind_one_that_goes_on(page: Page) -> None:
    old = [["a", "io", 2.0 + k, 2.5 + k, 1.0] for k in range(50)]
    goes_on = ["a", "would-wait", 1.0, None, 0.0]
    told = taken(page, whole(goes_on, *old, now=60.0), delta(2000.0, goes_on))
    assert len(told[0]["stretches"]) == 51
    assert told[1]["stretches"] == [["would-wait", 1, None, 0]]


def test_jobs_go_when_an_answer_is_complete_and_not_amid_it(page: Page) -> None:
    """What is drawn between two pieces of an answer finds every job that it has ids of."""
    first = whole(["a", "io", 990.0, 991.0, 1.0])
    _, end = taken(page, first, delta(1001.0, jobs=["b"], gone=["a"]))
    assert end["amid"] == ["a", "b"]
    assert end["jobs"] == ["b"]
    assert end["lanes"] == []
    _, back = taken(page, first, delta(1001.0, jobs=["a"], gone=["a"]))
    assert back["jobs"] == ["a"]


def test_unknown_times_are_neither_drawn_nor_described_as_computing(page: Page) -> None:
    """A job from 0 to 100 s whose history is known from 60 s on, and one whose is known from 0."""
    drawn, texts = page.evaluate(
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
    assert drawn == [["line", 600, 400], ["unknown", 0, 600], ["line", 0, 1000]]
    assert "a is unknown at" in texts[0]
    assert "a computes at" in texts[1]
