"""A real site with an HTTP port, its jobs, and a browser that looks at it."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from limits import HANG
from live.controller.turn_deployment import Deployed
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

PHASES = Path(__file__).parent / "phases.py"
SCREENSHOTS = Path(__file__).parents[2] / "out" / "screenshots"
CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = HANG
WIDE, NARROW = (1440, 900), (420, 900)


class Site(Deployed):
    """A deployment whose dashboard can be looked at."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.port = 0

    def serve(
        self,
        *options: str,
        mode: str = "enforce",
        policy: str = "exclusive-fcfs",
        io_nodes: int = 2,
        emulate: str = "targets=1,rate=40MiB/s",
    ) -> None:
        """Bring it up, at the port it had before, if it had one."""
        shape = ("--io-nodes", str(io_nodes), "--emulate", emulate, "--http", str(self.port))
        rules = ("--policy", policy, "--mode", mode, *options)
        self.penstock("up", "--root", str(self.root), *shape, *rules)
        self.port = int(self.url.rpartition(":")[2])

    @property
    def url(self) -> str:
        return self.state.http.read_text().strip()

    def phases(self, name: str, computes: float, size: int, count: int) -> Any:
        """Start a real job: `count` times compute for some seconds, then write `size` MiB."""
        arguments = (name, str(computes), str(size), str(count))
        return self.run(name, sys.executable, str(PHASES), *arguments)


def finished(runs: Sequence["subprocess.Popen[str]"]) -> None:
    """Wait for jobs to end with status 0."""
    for run in runs:
        _, err = run.communicate(timeout=2 * PATIENCE)
        assert run.returncode == 0, err


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield Debian's Chromium, without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


class Visits:
    """Pages of dashboards; none may raise an error, or violate the content security policy."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[Any] = []
        self.faults: list[str] = []

    def __call__(
        self,
        url: str,
        view: str = "",
        *,
        scheme: Any = "light",
        size: tuple[int, int] = WIDE,
        wait: bool = True,
    ) -> Page:
        """Open the dashboard at a view, and wait until it is live."""
        width, height = size
        context = self._browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        self._contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda message: self._check(message.text))
        page.goto(f"{url}/#{view}" if view else url)
        if wait:
            expect(page.locator("#answer")).to_have_attribute("data-state", "live")
        return page

    def _check(self, text: str) -> None:
        if "Content Security Policy" in text or "Refused to" in text:
            self.faults.append(text)

    def close(self) -> None:
        for context in self._contexts:
            context.close()
        assert self.faults == []


def keep(page: Page, name: str) -> Path:
    """Keep a screenshot, for people; both themes, if the page follows the system's."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    path = SCREENSHOTS / f"{name}.png"
    page.screenshot(path=path)
    assert path.stat().st_size > 10_000
    return path


def keep_both(page: Page, name: str) -> None:
    """Keep a view in light and in dark."""
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 60)))"
        )
        keep(page, f"{name}-{scheme}")


def lane(page: Page, job: str, within: str = ".area-gantt") -> Locator:
    """Return the label of a job's lane."""
    return page.locator(f"{within} .row-label:not([hidden])", has_text=job)


def focused(page: Page) -> str:
    """Return what has the focus: its id, or else its label or text."""
    name: str = page.evaluate(
        "() => { const at = document.activeElement;"
        " return at.id || at.getAttribute('aria-label') || at.textContent; }"
    )
    return name


def closed_port() -> int:
    """Return a port of this host without a listener."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


def environment() -> dict[str, str]:
    """Return the environment with tests' modules importable."""
    return os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
