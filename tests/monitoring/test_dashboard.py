"""Grafana can import the dashboard.

The check uses grafana-foundation-sdk, Grafana's own library with a type for every part of a
dashboard: a field that it does not know, Grafana does not know either.
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
    ".__inputs": "requested at import",
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


def differences(ours: Any, decoded: Any, where: str = "") -> Iterator[str]:
    """Yield the fields of ours that the decoded document lacks, or that differ."""
    if isinstance(ours, dict):
        for key, value in ours.items():
            if key not in decoded:
                yield f"{where}.{key}"
            else:
                yield from differences(value, decoded[key], f"{where}.{key}")
    elif isinstance(ours, list):
        for mine, its in itertools.zip_longest(ours, decoded):
            yield from differences(mine, its, where)
    elif ours != decoded:
        yield f"{where} is {decoded!r}, not {ours!r}"


def unknown(ours: dict[str, Any]) -> set[str]:
    """Return the fields that Grafana's types do not know, except those of exports."""
    register_default_plugins()  # the types of panels and queries
    decoded = json.loads(JSONEncoder().encode(Dashboard.from_json(ours)))
    fields = set(differences(ours, decoded))
    assert fields >= set(EXPORTED)
    return fields - set(EXPORTED)


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
    grafana_units = {value for name, value in vars(units).items() if not name.startswith("_")}
    used = {panel["fieldConfig"]["defaults"]["unit"] for panel in dashboard.panels()}
    assert used <= grafana_units
    assert len(used) > 5


def test_panels_have_ids_of_their_own_and_say_what_they_show() -> None:
    listed = dashboard.read()["panels"]
    assert [n for n, times in Counter(panel["id"] for panel in listed).items() if times > 1] == []
    titles = Counter(panel["title"] for panel in listed)
    assert [title for title, times in titles.items() if times > 1] == []
    assert [panel["title"] for panel in dashboard.panels() if not panel["description"]] == []


def test_no_panel_lies_on_another() -> None:
    cells: dict[tuple[int, int], str] = {}
    for panel in dashboard.read()["panels"]:
        at = panel["gridPos"]
        assert at["w"] > 0 < at["h"]
        assert 0 <= at["x"] <= WIDTH - at["w"], panel["title"]
        for x, y in itertools.product(range(at["w"]), range(at["h"])):
            cell = (at["x"] + x, at["y"] + y)
            assert cell not in cells, (panel["title"], cells.get(cell))
            cells[cell] = panel["title"]


def test_importing_it_asks_for_a_data_source() -> None:
    document = dashboard.read()
    (source,) = document["__inputs"]
    assert (source["name"], source["type"], source["pluginId"]) == (
        "DS_PROMETHEUS",
        "datasource",
        "prometheus",
    )
    for panel in dashboard.panels():
        assert panel["datasource"] == SOURCE
        for target in panel["targets"]:
            assert target["datasource"] == SOURCE
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
    assert {v["datasource"]["uid"] for v in document["templating"]["list"]} == {SOURCE["uid"]}


def test_it_lists_its_panel_types() -> None:
    document = dashboard.read()
    needed = {part["id"] for part in document["__requires"] if part["type"] == "panel"}
    assert needed == {panel["type"] for panel in dashboard.panels()}
    assert document["uid"] == "penstock"
    assert document["schemaVersion"] >= 36


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
def test_every_important_metric_has_a_panel(kind: str, metric: str) -> None:
    titles = [
        panel["title"]
        for panel in dashboard.panels()
        for target in panel["targets"]
        if panel["type"] == kind and metric in dashboard.metrics_in(target["expr"])
    ]
    assert titles
