"""Takes the dashboard's picture for the documentation: ten real jobs on an emulated file system.

python tests/dashboard/portrait.py docs/figures/dashboard.png
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # as a program, not as tests

from dashboard.watched_site import Site, Visits, chromium
from playwright.sync_api import expect

from penstock.live.deployment import launcher

JOBS = {
    "short-a": (0.8, 12, 45),
    "short-b": (0.7, 10, 50),
    "short-c": (1.0, 16, 40),
    "middle-a": (2.0, 24, 24),
    "middle-b": (2.4, 30, 20),
    "long-a": (6.0, 90, 9),
    "long-b": (7.0, 120, 8),
    "long-c": (5.0, 70, 10),
    "huge": (11.0, 180, 5),
    "tiny": (0.5, 4, 60),
}
"""Seconds of computing, MiB of a phase, phases."""
SECONDS = 55


def main() -> None:
    target = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder))
        tokens = Path(folder, "tokens")
        tokens.write_text("reader read 0123456789abcdef-reader\n")
        tokens.chmod(0o600)
        try:
            with site.jobs, chromium() as browser:
                site.serve(
                    *("--token-file", str(tokens), "--stripe", "1MiB"),
                    policy="set-10",
                    io_nodes=4,
                    emulate="targets=4,rate=120MiB/s",
                )
                for name, shape in JOBS.items():
                    site.phases(name, *shape)
                page = Visits(browser)(site.url, wait=False)
                page.get_by_role("textbox", name="Token").fill("0123456789abcdef-reader")
                page.keyboard.press("Enter")
                expect(page.locator("#answer")).to_have_attribute("data-state", "live")
                page.wait_for_timeout(1000 * SECONDS)
                page.screenshot(path=target)
        finally:
            launcher.down(site.state)


if __name__ == "__main__":
    main()
