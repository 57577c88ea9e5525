"""What deploy/grafana/penstock.json asks of Prometheus."""

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
    """Return what shows something: all but the rows' headings."""
    return [panel for panel in read()["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    """Yield each panel's title with each of its expressions."""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def filled(expression: str, window: str) -> str:
    """Put in what Grafana would: all controllers, and a time for a rate."""
    return expression.replace("$instance", ".*").replace("$__rate_interval", window)


def named(expression: str) -> set[str]:
    """Return the metrics in an expression; what is said of labels is none."""
    return set(METRIC.findall(re.sub(r'"[^"]*"', '""', expression)))
