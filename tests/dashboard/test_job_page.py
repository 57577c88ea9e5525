"""A job's page: its phases, what was expected of them and what came, w_iter, waits."""

import re

from dashboard.watched_site import Site, Visits, finished, keep_both, lane
from playwright.sync_api import expect

PHASES = 5


def test_expected_and_observed_of_real_phases(site: Site, visit: Visits) -> None:
    """A job of equal phases: after the first, as many bytes are expected as come."""
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
    expect(page.locator(".facts")).to_contain_text("doesended")
    expect(page.locator(".facts")).to_contain_text(f"through I/O nodes{8 * PHASES} MiB")
    expect(rows.first).to_contain_text(re.compile(r"8 MiB.*8 MiB"))
    for title in ("Seconds", "Bytes"):
        chart = page.get_by_role("img", name=f"{title} of phases, expected against observed")
        assert chart.locator("circle").count() >= PHASES - 1
        expect(chart.locator(".agree")).to_have_count(1)
    iterations = page.get_by_role("img", name="w_iter over time")
    assert iterations.locator("circle").count() >= 1
    waits = page.get_by_role("img", name=re.compile(rf"\d of {PHASES} phases waited"))
    assert waits.locator(".bar").count() >= 1
    expect(page.locator(".area-known")).to_contain_text("phase bytes8 MiB")
    keep_both(page, "job")
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile("#overview$"))


def test_who_has_a_token_sees_whose_it_is_and_no_name_becomes_markup(
    site: Site, visit: Visits
) -> None:
    hostile = "<img src=x onerror=window.pwned=1>"
    tokens = site.root.parent / "tokens"
    tokens.write_text("ops read 0123456789abcdef-reader\n")
    tokens.chmod(0o600)
    site.serve("--token-file", str(tokens))
    job = site.run("x", "sh", "-c", f": '{hostile}'; sleep 600")
    page = visit(site.url, "job/x.1", wait=False)
    dialog = page.get_by_role("dialog", name="This site asks for a token")
    expect(dialog).to_be_visible()
    keep_both(page, "token")
    page.get_by_role("textbox", name="Token").fill("a wrong one, long enough")
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("That token is not known")
    page.get_by_role("textbox", name="Token").fill("0123456789abcdef-reader")
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(page.locator("#answer")).to_have_attribute("data-state", "live")
    expect(page.locator(".chips")).not_to_contain_text("anonymous")
    expect(page.locator(".fact-command")).to_contain_text(hostile)
    expect(page.locator(".fact-user dd")).not_to_be_empty()
    page.reload()  # it is kept in this tab
    expect(page.locator(".fact-command")).to_contain_text(hostile)
    page.goto(f"{site.url}/#overview")
    expect(page.locator(".top-users")).to_contain_text("user")
    assert page.locator("img[src=x]").count() == 0
    assert not page.evaluate("window.pwned")
    page.get_by_role("button", name="Forget token").click()
    expect(dialog).to_be_visible()
    page.reload()
    expect(dialog).to_be_visible()
    job.kill()


def test_a_job_that_nobody_knows(site: Site, visit: Visits) -> None:
    site.serve()
    page = visit(site.url, "job/nobody.7")
    expect(page.get_by_text("This job is not known any more.")).to_be_visible()
    page.goto(f"{site.url}/#job/%E0%A4%A")  # a link that was cut
    expect(page.get_by_text("Which job?")).to_be_visible()
    expect(page.get_by_text("No job yet.")).to_be_visible()
