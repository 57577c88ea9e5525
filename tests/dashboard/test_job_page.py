"""A job's page: its phases, predicted and observed, w_iter, waits."""

import json
import re

import pytest
from dashboard.watched_site import Site, Visits, finished, keep_both, lane
from playwright.sync_api import Page, Route, expect

PHASES = 5
NONE = "\u2013"
"""Shown in place of a missing value."""


def test_predicted_and_observed_phases(site: Site, visit: Visits) -> None:
    """A job of equal phases: after the first one, the prediction is right."""
    site.serve()
    page = visit(site.url)
    runs = [site.phases("steady", 0.6, 8, PHASES), site.phases("other", 0.5, 8, PHASES)]
    name = lane(page, "steady")
    expect(name).to_be_visible()
    id = name.locator(".name").inner_text()
    name.click()
    expect(page).to_have_url(re.compile(rf"#job/{re.escape(id)}$"))
    expect(page.locator(".job-name")).to_have_text(id)
    finished(runs)
    rows = page.locator(".phases tbody tr")
    expect(rows).to_have_count(PHASES)
    expect(page.locator(".facts")).to_contain_text("stateended")
    expect(page.locator(".facts")).to_contain_text(f"through I/O nodes{8 * PHASES} MiB")
    expect(rows.first).to_contain_text(re.compile(r"8 MiB.*8 MiB"))
    for title in ("Seconds", "Bytes"):
        chart = page.get_by_role("img", name=f"{title} of phases, predicted and observed")
        assert chart.locator("circle").count() >= PHASES - 1
        expect(chart.locator(".agree")).to_have_count(1)
    iterations = page.get_by_role("img", name="w_iter over time")
    assert iterations.locator("circle").count() >= 1
    box = iterations.locator("path.path").bounding_box()
    assert box is not None
    assert box["width"] > 50  # to the last phase
    for chart in page.locator("svg.chart").all():
        texts = chart.locator("text.tick[text-anchor=middle]").all_text_contents()
        assert len(texts) == len(set(texts))
    waits = page.get_by_role("img", name=re.compile(rf"\d of {PHASES} phases waited"))
    assert waits.locator(".bar").count() >= 1
    expect(page.locator(".area-known")).to_contain_text("phase bytes8 MiB")
    keep_both(page, "job")
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile("#overview$"))


@pytest.mark.security
def test_a_token_shows_users_and_no_name_becomes_markup(site: Site, visit: Visits) -> None:
    hostile = "<img src=x onerror=window.pwned=1>"
    tokens = site.root.parent / "tokens"
    tokens.write_text("ops read 0123456789abcdef-reader\n")
    tokens.chmod(0o600)
    site.serve("--token-file", str(tokens))
    job = site.run("x", "sh", "-c", f": '{hostile}'; sleep 600")
    page = visit(site.url, "job/x.1", wait=False)
    dialog = page.get_by_role("dialog", name="This site requires a token")
    expect(dialog).to_be_visible()
    keep_both(page, "token")
    page.get_by_role("textbox", name="Token").fill("a wrong one, long enough")
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("does not know that token")
    page.get_by_role("textbox", name="Token").fill("0123456789abcdef-reader")
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(page.locator("#answer")).to_have_attribute("data-state", "live")
    expect(page.locator(".chips")).not_to_contain_text("anonymous")
    expect(page.locator(".fact-command")).to_contain_text(hostile)
    expect(page.locator(".fact-user dd")).not_to_be_empty()
    page.reload()  # the token is stored in this tab
    expect(page.locator(".fact-command")).to_contain_text(hostile)
    page.goto(f"{site.url}/#overview")
    expect(page.locator(".top-users")).to_contain_text("user")
    expect(lane(page, "x.1")).to_be_visible()
    assert page.locator("img[src=x]").count() == 0
    assert not page.evaluate("window.pwned")
    page.get_by_role("button", name="Forget token").click()
    expect(dialog).to_be_visible()
    expect_signed_out(page)
    page.reload()
    expect(dialog).to_be_visible()
    job.kill()


def expect_signed_out(page: Page) -> None:
    """Nothing that needed the token is shown any more, and the state is not "live"."""
    expect(page.locator("#answer")).to_have_attribute("data-state", "denied")
    expect(page.locator("#answer")).to_contain_text("not signed in")
    expect(lane(page, "x.1")).to_have_count(0)
    expect(page.locator(".chips .chip")).to_have_count(0)
    expect(page.locator(".figures")).to_contain_text(f"running{NONE}")
    assert "x.1" not in page.locator("body").inner_text()
    expect(page.get_by_role("button", name="Forget token")).to_be_hidden()


@pytest.mark.security
def test_a_revoked_token_clears_the_page(site: Site, visit: Visits) -> None:
    """The controller refuses one answer to the next; once it accepts again, all is shown again."""
    site.serve()
    job = site.obedient("x")
    page = visit(site.url)
    expect(lane(page, "x.1")).to_be_visible()
    problem = json.dumps({"error": "not known", "hint": ""})

    def refuse(route: Route) -> None:
        route.fulfill(status=401, content_type="application/json", body=problem)

    page.context.route("**/v1/timeline*", refuse)
    expect(page.get_by_role("dialog", name="This site requires a token")).to_be_visible()
    expect_signed_out(page)
    page.context.unroute("**/v1/timeline*")
    expect(lane(page, "x.1")).to_be_visible()
    expect(page.locator("#answer")).to_have_attribute("data-state", "live")
    job.finish()


def test_a_waiting_phase_has_no_share(site: Site, visit: Visits) -> None:
    site.serve()
    first, large = site.obedient("first"), site.obedient("large")
    site.held(first, large)
    page = visit(site.url, "job/large.2")
    row = page.locator(".phases tbody tr").first
    expect(row.locator("td").last).to_have_text(NONE)
    expect(row).to_contain_text("waits")
    expect(row.locator("td").nth(1)).to_have_text(re.compile(r"[1-9][\d.]* m?s"))
    first.do("end")
    assert large.answer() == "write"
    expect(row.locator("td").last).to_have_text(re.compile(r"\d+%"))
    for each in (first, large):
        each.finish()


def test_an_unknown_job(site: Site, visit: Visits) -> None:
    """It may be a typing error: nothing says that there was such a job."""
    site.serve()
    page = visit(site.url, "job/nobody.7")
    expect(page.get_by_text("The controller does not know this job.")).to_be_visible()
    expect(page.get_by_text("Check its id")).to_be_visible()
    page.goto(f"{site.url}/#job/%E0%A4%A")  # an incomplete link
    expect(page.get_by_text("Which job?")).to_be_visible()
    expect(page.get_by_text("No job yet.")).to_be_visible()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ((), "this site runs without penstock up --tune"),
        (("--scheduler", "twins", "--tune", "window"), "one is noted while the job transfers"),
    ],
)
def test_what_is_unknown_of_a_job_has_its_true_reason(
    site: Site, visit: Visits, options: tuple[str, ...], why: str
) -> None:
    """With --tune on, the page advised to use --tune; 0 bytes had no reason at all."""
    site.serve(*options)
    other = site.root.parent / "elsewhere"
    finished([site.run("lost", "sh", "-c", f"echo 1 > {other}")])
    page = visit(site.url, "job/lost.1")
    expect(page.locator(".area-known")).to_contain_text(why)
    facts = page.locator(".facts")
    expect(facts).not_to_contain_text("0 bytes because")  # private: only with a token
    expect(facts).to_contain_text(re.compile(r"I/O nodes allowed[01]I"))
    expect(facts).to_contain_text("I/O nodes usednone")


def test_shares_granted_and_received_and_io_nodes_used(site: Site, visit: Visits) -> None:
    """Its one process uses one of the two I/O nodes, and moves all that is moved."""
    site.serve("--set", "site.bandwidth=40MiB/s")
    run = site.phases("only", 0.1, 400, 1)
    page = visit(site.url, "job/only.1")
    facts = page.locator(".facts")
    expect(facts).to_contain_text("share granted100%")
    expect(facts).to_contain_text("share received100%")
    expect(facts).to_contain_text(re.compile(r"I/O nodes used[01]n"))
    expect(page.locator(".figures")).to_contain_text(re.compile(r"of site.bandwidth[1-9]\d*%"))
    run.terminate()  # its command, too
    run.wait()
