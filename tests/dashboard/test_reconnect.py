"""The controller stops and restarts: the page shows both, and then the present state."""

import os
import re
import signal

from dashboard.watched_site import PATIENCE, Site, Visits, keep_both, lane
from playwright.sync_api import expect

from penstock.live.protocol.state_directory import wait_for_exit


def test_killed_and_brought_up_again(site: Site, visit: Visits) -> None:
    """A new controller knows running jobs, not those that had ended; nor does the page."""
    site.serve()
    old, stays = site.obedient("old"), site.obedient("stays")
    page = visit(site.url)
    expect(lane(page, "stays.2")).to_be_visible()
    old.finish()
    expect(lane(page, "old.1")).to_contain_text("ended")
    killed = os.pidfd_open(site.controller)
    os.kill(site.controller, signal.SIGKILL)
    assert wait_for_exit(killed, PATIENCE)
    os.close(killed)
    answer = page.locator("#answer")
    expect(answer).to_have_attribute("data-state", "lost")
    expect(answer).to_contain_text(re.compile(r"No answer since \d\d:\d\d:\d\d.*Jobs continue"))
    expect(lane(page, "stays.2")).to_be_visible()  # the last data stay on the page
    keep_both(page, "overview-away")
    site.serve()
    expect(answer).to_have_attribute("data-state", "live")
    expect(lane(page, "stays.2")).to_be_visible()
    expect(lane(page, "old.1")).to_have_count(0)
    new = site.obedient("new")
    expect(lane(page, new.name)).to_be_visible()
    new.finish()
    stays.finish()
    expect(lane(page, "stays.2")).to_contain_text("ended")


def test_a_page_with_an_expired_cursor_loads_everything_again(site: Site, visit: Visits) -> None:
    """The answer to an unknown cursor is the whole timeline."""
    site.serve()
    urls: list[str] = []
    page = visit("about:blank", wait=False)

    def stale(route: object, request: object) -> None:
        url = request.url  # type: ignore[attr-defined]
        urls.append(url)
        if len(urls) == 3:
            url = re.sub(r"since=[^&]*", "since=long-ago-1", url)
        route.continue_(url=url)  # type: ignore[attr-defined]

    page.context.route("**/v1/timeline*", stale)
    page.goto(site.url)
    job = site.obedient("here")
    expect(lane(page, "here.1")).to_be_visible()
    for _ in range(150):  # half a minute
        if len(urls) >= 5:
            break
        page.wait_for_timeout(200)
    assert len(urls) >= 5
    expect(lane(page, "here.1")).to_have_count(1)
    job.finish()
    expect(lane(page, "here.1")).to_contain_text("ended")
