"""Every question of the dashboard and of the alerts, asked of a real Prometheus about real jobs."""

import json
import math
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from live.http.api_site import READER, bearing, token_file
from live.http.real_prometheus import EXAMPLE, Prometheus, scraping
from monitoring import dashboard

PENSTOCK = (sys.executable, "-P", "-m", "penstock.cli")
RULES = EXAMPLE / "penstock.rules.yml"
WAIT, POLL = 90.0, 0.2
WINDOW = "20s"
LEFT_OUT = {"process_virtual_memory_bytes": "what is mapped says little of what is used"}
"""Metrics that no panel shows, and why."""


@contextmanager
def site(folder: Path) -> Iterator[str]:
    """A controller with turns to wait for, and jobs that go on writing; gives the API's URL."""
    (folder / "data").mkdir()
    up = (
        *("--root", "data", "--io-nodes", "2", "--emulate", "targets=1,rate=40MiB/s"),
        *("--policy", "exclusive-fcfs", "--mode", "enforce", "--set", "live.max-wait=300 ms"),
        *("--scheduler", "twins", "--tune", "window"),
        *("--http", "0", "--token-file", str(token_file(folder)), "--job-metrics", "5"),
    )
    penstock(folder, "up", *up)
    write = "while dd if=/dev/zero of=data/$0 bs=1M count=16 conv=fsync; do sleep 0.05; done"
    run = [*PENSTOCK, "run", "--state", "state", "--"]
    with (folder / "jobs.log").open("wb") as log:
        jobs = [
            subprocess.Popen([*run, "sh", "-c", write, name], cwd=folder, stdout=log, stderr=log)
            for name in ("one", "two")
        ]
    try:
        yield (folder / "state/http").read_text().strip()
    finally:
        for job in jobs:
            job.terminate()
            job.wait(WAIT)
        penstock(folder, "down")


def penstock(folder: Path, verb: str, *words: str) -> None:
    done = subprocess.run(
        [*PENSTOCK, verb, "--state", "state", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with site(tmp_path_factory.mktemp("site")) as where:
        yield where


@pytest.fixture(scope="module")
def prometheus(where: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with scraping(tmp_path_factory.mktemp("prometheus"), where, READER) as prometheus:
        # Jobs have moved something, waited, and been let past a gate.
        for happened in ("forwarded_bytes_total", "fail_open_total", "turn_wait_seconds_count"):
            assert prometheus.awaited(f"increase(penstock_{happened}[{WINDOW}]) > 0")
        yield prometheus


@pytest.fixture(scope="module")
def metrics(where: str, prometheus: Prometheus) -> set[str]:
    """The names of all series of a controller."""
    answer = httpx.get(f"{where}/metrics", headers=bearing(READER), timeout=WAIT, trust_env=False)
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    return {re.split(r"[{ ]", line)[0] for line in lines}


def rules() -> list[tuple[str, str]]:
    """Return the alerts' names and expressions, as Prometheus's own tool reads them."""
    text = RULES.read_text()
    return re.findall(r"- alert: (\w+)\n\s+expr: (.*)\n", text)


def series(prometheus: Prometheus, expression: str) -> list[dict[str, Any]]:
    """Return an expression's series with a number, once there are any."""
    question = dashboard.filled(expression, WINDOW)
    until = time.monotonic() + WAIT
    while True:
        found = [s for s in prometheus.ask(question) if not math.isnan(float(s["value"][1]))]
        if found or time.monotonic() > until:
            return found
        time.sleep(POLL)


@pytest.mark.parametrize(
    ("title", "expression"),
    list(dashboard.expressions()),
    ids=[f"{k}-{title}" for k, (title, _) in enumerate(dashboard.expressions())],
)
def test_a_panel_has_something_to_show(prometheus: Prometheus, title: str, expression: str) -> None:
    found = series(prometheus, expression)
    assert found, expression
    assert all(float(one["value"][1]) >= 0 for one in found)


def test_panels_of_several_series_tell_them_apart(prometheus: Prometheus) -> None:
    """A legend names labels that the series have; else all of them would be called alike."""
    checked = 0
    for panel in dashboard.panels():
        for target in panel["targets"]:
            for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                checked += 1
                for one in series(prometheus, target["expr"]):
                    assert label in one["metric"], (panel["title"], label)
    assert checked > 8


def test_what_is_shown_is_what_happened(prometheus: Prometheus) -> None:
    """Two I/O nodes, two jobs of ours; nothing failed but gates that opened in time."""
    panels = {panel["title"]: panel["targets"][0]["expr"] for panel in dashboard.panels()}

    def shown(title: str) -> dict[str, float]:
        found = series(prometheus, panels[title])
        return {" ".join(sorted(s["metric"].values())): float(s["value"][1]) for s in found}

    assert shown("Jobs running") == {"": 2}
    assert shown("I/O nodes that do not serve") == {"": 0}
    assert shown("Controllers scraped") == {"": 1}
    assert shown("I/O nodes over time").keys() == {"0", "1"}
    assert shown("Fail opens, by reason")["overdue"] > 0
    assert len(shown("Jobs that wrote most")) == 2


def test_the_variable_lists_the_controllers(prometheus: Prometheus, where: str) -> None:
    (variable,) = dashboard.read()["templating"]["list"]
    told = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"])
    assert told is not None
    found = prometheus.get(f"label/{told[2]}/values", **{"match[]": told[1]})
    assert found == [where.removeprefix("http://")]


def test_annotations_are_alerts(prometheus: Prometheus) -> None:
    (shown,) = [a for a in dashboard.read()["annotations"]["list"] if "expr" in a]
    assert prometheus.ask(shown["expr"]) == []
    matched = re.search(r'alertname=~"(.*?)"', shown["expr"])
    assert matched is not None
    assert all(re.fullmatch(matched[1], name) for name, _ in rules())


def test_prometheus_evaluates_every_alert(prometheus: Prometheus) -> None:
    (group,) = prometheus.get("rules")["groups"]
    until = time.monotonic() + WAIT
    while any(rule["health"] == "unknown" for rule in group["rules"]):
        assert time.monotonic() < until
        time.sleep(POLL)
        (group,) = prometheus.get("rules")["groups"]
    assert {rule["name"]: rule["health"] for rule in group["rules"]} == {
        name: "ok" for name, _ in rules()
    }
    assert len(rules()) > 5


def test_every_alert_fires_when_it_should_and_not_before() -> None:
    """With series made up, by Prometheus's own tool."""
    tests = Path(__file__).with_name("rules.test.yml")
    told = tests.read_text()
    assert set(re.findall(r"alertname: (\w+)", told)) == {name for name, _ in rules()}
    done = subprocess.run(
        ["promtool", "test", "rules", tests],
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_metric_asked_for_exists(metrics: set[str]) -> None:
    asked = [*dashboard.expressions(), *rules()]
    wanted = set[str]().union(*(dashboard.named(expression) for _, expression in asked))
    assert wanted - metrics - dashboard.OF_PROMETHEUS == set()


def test_every_metric_is_shown_or_left_out_for_a_reason(metrics: set[str]) -> None:
    shown = set[str]().union(*(dashboard.named(e) for _, e in dashboard.expressions()))
    assert metrics - shown == set(LEFT_OUT)
    told = (EXAMPLE.parents[1] / "docs/live/monitoring.md").read_text()
    assert [name for name in LEFT_OUT if name not in told] == []


def test_the_dashboard_file_is_as_json_writes_it() -> None:
    """So that a change in it can be read line by line."""
    text = dashboard.FILE.read_text()
    assert text == json.dumps(dashboard.read(), indent=1, ensure_ascii=False) + "\n"
