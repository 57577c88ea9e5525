"""The Grafana dashboard is one that Grafana takes.

Grafana is not packaged where these tests run. A library of its makers is (grafana-foundation-sdk),
with a type for every part of a dashboard: what it does not know, Grafana would not either.
"""

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import Dashboard
from monitoring import dashboard

EXPORTED = {
    ".__inputs": "asked for at import",
    ".__elements": "of exports: library panels",
    ".__requires": "of exports: what it was made for",
    ".id": "Grafana's own, null in a file",
    ".annotations.list.builtIn": "Grafana's own annotations",
    ".annotations.list.titleFormat": "of annotations by Prometheus",
    ".annotations.list.textFormat": "of annotations by Prometheus",
    ".annotations.list.step": "of annotations by Prometheus",
    ".templating.list.definition": "of variables by Prometheus",
}
"""What the library leaves out, though Grafana writes it."""
WIDTH = 24
SOURCE = {"type": "prometheus", "uid": "${DS_PROMETHEUS}"}


def differences(ours: Any, theirs: Any, where: str = "") -> Iterator[str]:
    """Yield where something of ours is not in theirs, or is something else."""
    if isinstance(ours, dict):
        for key, value in ours.items():
            if key not in theirs:
                yield f"{where}.{key}"
            else:
                yield from differences(value, theirs[key], f"{where}.{key}")
    elif isinstance(ours, list):
        for mine, its in itertools.zip_longest(ours, theirs):
            yield from differences(mine, its, where)
    elif ours != theirs:
        yield f"{where} is {theirs!r}, not {ours!r}"


def unknown(ours: dict[str, Any]) -> set[str]:
    """Return what Grafana's own types do not know of a dashboard, but for what exports have."""
    register_default_plugins()  # the types of panels and queries
    theirs = json.loads(JSONEncoder().encode(Dashboard.from_json(ours)))
    found = set(differences(ours, theirs))
    assert found >= set(EXPORTED)
    return found - set(EXPORTED)


def test_grafanas_own_types_know_every_field() -> None:
    assert unknown(dashboard.read()) == set()


def test_a_field_that_grafana_does_not_know_is_found() -> None:
    ours = dashboard.read()
    ours["panels"][1]["options"]["colourMode"] = "value"
    ours["panels"][2]["gridpos"] = {}
    ours["panels"][3]["targets"][0]["express"] = "up"
    assert unknown(ours) == {
        ".panels.options.colourMode",
        ".panels.gridpos",
        ".panels.targets.express",
    }


def test_units_are_grafanas() -> None:
    known = {value for name, value in vars(units).items() if not name.startswith("_")}
    used = {panel["fieldConfig"]["defaults"]["unit"] for panel in dashboard.panels()}
    assert used <= known
    assert len(used) > 5


def test_panels_have_ids_of_their_own_and_say_what_they_show() -> None:
    listed = dashboard.read()["panels"]
    assert [n for n, times in Counter(panel["id"] for panel in listed).items() if times > 1] == []
    titles = Counter(panel["title"] for panel in listed)
    assert [title for title, times in titles.items() if times > 1] == []
    assert [panel["title"] for panel in dashboard.panels() if not panel["description"]] == []


def test_no_panel_lies_on_another() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in dashboard.read()["panels"]:
        at = panel["gridPos"]
        assert at["w"] > 0 < at["h"]
        assert 0 <= at["x"] <= WIDTH - at["w"], panel["title"]
        for x, y in itertools.product(range(at["w"]), range(at["h"])):
            cell = (at["x"] + x, at["y"] + y)
            assert cell not in taken, (panel["title"], taken.get(cell))
            taken[cell] = panel["title"]


def test_whoever_imports_it_is_asked_for_a_prometheus() -> None:
    told = dashboard.read()
    (asked,) = told["__inputs"]
    assert (asked["name"], asked["type"], asked["pluginId"]) == (
        "DS_PROMETHEUS",
        "datasource",
        "prometheus",
    )
    for panel in dashboard.panels():
        assert panel["datasource"] == SOURCE
        for target in panel["targets"]:
            assert target["datasource"] == SOURCE
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
    assert {v["datasource"]["uid"] for v in told["templating"]["list"]} == {SOURCE["uid"]}


def test_it_says_what_it_is_made_of() -> None:
    told = dashboard.read()
    needed = {part["id"] for part in told["__requires"] if part["type"] == "panel"}
    assert needed == {panel["type"] for panel in dashboard.panels()}
    assert told["uid"] == "penstock"
    assert told["schemaVersion"] >= 36


@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        ("timeseries", "penstock_forwarded_bytes_total"),
        ("timeseries", "penstock_direct_bytes_total"),
        ("timeseries", "penstock_waiting_jobs"),
        ("timeseries", "penstock_turn_wait_seconds_bucket"),
        ("heatmap", "penstock_turn_wait_seconds_bucket"),
        ("timeseries", "penstock_throttled_seconds_total"),
        ("timeseries", "penstock_fail_open_total"),
        ("state-timeline", "penstock_io_node_up"),
        ("status-history", "penstock_io_node_bytes_total"),
        ("bargauge", "penstock_job_write_bytes_total"),
        ("timeseries", "penstock_policy_failures_total"),
        ("timeseries", "penstock_scrape_duration_seconds"),
    ],
)
def test_what_administrators_ask_for_is_shown(kind: str, metric: str) -> None:
    shown = [
        panel["title"]
        for panel in dashboard.panels()
        for target in panel["targets"]
        if panel["type"] == kind and metric in dashboard.named(target["expr"])
    ]
    assert shown
