"""The expressions in deploy/grafana/penstock.json."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[2] / "deploy/grafana/penstock.json"
METRIC = re.compile(r"\b(?:penstock|process|scrape)_\w+|\bup\b|\bALERTS\b")
OF_PROMETHEUS = {"up", "scrape_duration_seconds", "ALERTS"}
"""Series that Prometheus makes itself."""


def read() -> dict[str, Any]:
    dashboard: dict[str, Any] = json.loads(FILE.read_text())
    return dashboard


def panels() -> list[dict[str, Any]]:
    """Return all panels but the headings of rows."""
    return [panel for panel in read()["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    """Yield each panel's title with each of its expressions."""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def filled(expression: str, window: str) -> str:
    """Replace variables as Grafana does: all controllers, and a window for rates."""
    return expression.replace("$instance", ".*").replace("$__rate_interval", window)


def metrics_in(expression: str) -> set[str]:
    """Return the metrics in an expression, without what is in the values of labels."""
    return set(METRIC.findall(re.sub(r'"[^"]*"', '""', expression)))
