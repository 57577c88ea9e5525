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
        # Jobs have moved data, waited, and failed open at a gate.
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
        result = [s for s in prometheus.ask(question) if not math.isnan(float(s["value"][1]))]
        if result or time.monotonic() > until:
            return result
        time.sleep(POLL)


@pytest.mark.parametrize(
    ("title", "expression"),
    list(dashboard.expressions()),
    ids=[f"{k}-{title}" for k, (title, _) in enumerate(dashboard.expressions())],
)
def test_a_panel_has_something_to_show(prometheus: Prometheus, title: str, expression: str) -> None:
    result = series(prometheus, expression)
    assert result, expression
    assert all(float(one["value"][1]) >= 0 for one in result)


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

    def values(title: str) -> dict[str, float]:
        result = series(prometheus, panels[title])
        return {" ".join(sorted(s["metric"].values())): float(s["value"][1]) for s in result}

    assert values("Jobs running") == {"": 2}
    assert values("I/O nodes that do not serve") == {"": 0}
    assert values("Controllers scraped") == {"": 1}
    assert values("I/O nodes over time").keys() == {"0", "1"}
    assert values("Fail-opens, by reason")["overdue"] > 0
    assert len(values("Jobs that wrote most")) == 2


def test_the_variable_lists_the_controllers(prometheus: Prometheus, where: str) -> None:
    (variable,) = dashboard.read()["templating"]["list"]
    match = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"])
    assert match is not None
    instances = prometheus.get(f"label/{match[2]}/values", **{"match[]": match[1]})
    assert instances == [where.removeprefix("http://")]


def test_annotations_are_alerts(prometheus: Prometheus) -> None:
    (annotation,) = [a for a in dashboard.read()["annotations"]["list"] if "expr" in a]
    assert prometheus.ask(annotation["expr"]) == []
    matched = re.search(r'alertname=~"(.*?)"', annotation["expr"])
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
    names = set(re.findall(r"alertname: (\w+)", tests.read_text()))
    assert names == {name for name, _ in rules()}
    done = subprocess.run(
        ["promtool", "test", "rules", tests],
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_metric_asked_for_exists(metrics: set[str]) -> None:
    expressions = [*dashboard.expressions(), *rules()]
    used = set[str]().union(*(dashboard.metrics_in(expression) for _, expression in expressions))
    assert used - metrics - dashboard.OF_PROMETHEUS == set()


def test_every_metric_is_shown_or_left_out_for_a_reason(metrics: set[str]) -> None:
    in_panels = set[str]().union(*(dashboard.metrics_in(e) for _, e in dashboard.expressions()))
    assert metrics - in_panels == set(LEFT_OUT)
    page = (EXAMPLE.parents[1] / "docs/live/monitoring.md").read_text()
    assert [name for name in LEFT_OUT if name not in page] == []


def test_the_dashboard_file_is_as_json_writes_it() -> None:
    """So that a change in it can be read line by line."""
    text = dashboard.FILE.read_text()
    assert text == json.dumps(dashboard.read(), indent=1, ensure_ascii=False) + "\n"
