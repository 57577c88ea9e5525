"""One page per metric of `/metrics`: text, type and labels are those of a scrape."""

from pathlib import Path
from typing import Any

import yaml
from prometheus_client.metrics_core import Metric

from made.text import escaped, fenced, table
from penstock.live.http.metrics import ControllerMetrics, Scrape
from penstock.live.http.schema import Measures, Turns
from penstock.live.protocol import messages
from penstock.live.protocol.file_system_record import FileSystemRecord
from penstock.live.protocol.io_node_record import AllocationStatus, IoNodeRecord, TuningStatus
from penstock.live.protocol.job_record import JobRecord

RULES = Path(__file__).parents[3] / "deploy" / "prometheus" / "penstock.rules.yml"
ENDINGS = {"counter": "_total"}
NODE = IoNodeRecord(
    number=0, alive=True, state="serving", deaths=0, jobs=[], queued=0, read_bytes=0, write_bytes=0
)
JOB = JobRecord(
    id="a.1",
    state="running",
    user="ann",
    began=0.0,
    seconds=0.0,
    io_nodes=[],
    forwarded_bytes=0,
    direct_bytes=0,
    fail_opens=0,
    waits=0,
    waited_seconds=0.0,
)
ALLOCATION = AllocationStatus(
    policy="", placement="", fallback="", settle=0.0, moves=0, reasons={"policy": 0}
)
TUNING = TuningStatus(
    policy="",
    parameters=[],
    applied=True,
    rounds=0,
    explored=0,
    guarded=0,
    missed=0,
    exploring=[],
    contexts=0,
    faults=0,
)


def families() -> list[Metric]:
    """Return every family: those of a site in which every label has a value."""
    status = messages.Status(
        site="",
        jobs=[JOB],
        io_nodes=[NODE],
        file_systems=[FileSystemRecord(number=0, name="")],
        forwarded_bytes=0,
        direct_bytes=0,
        fail_open_total=0,
        allocation=ALLOCATION,
        tuning=TUNING,
    )
    measures = Measures(fail_opens={"gone": 0}, throttled_seconds={"ann": 0.0})
    scrape = Scrape(status=status, turns=Turns(), measures=measures, answers={200: 0}, seconds=0.0)
    return list(ControllerMetrics(jobs=1, names=True).families(scrape))


def name(family: Metric) -> str:
    """Return what a family is called in expressions."""
    return family.name + ENDINGS.get(family.type, "")


def pages() -> dict[str, str]:
    """Return the list, and a page each."""
    families_by_name = sorted(families(), key=name)
    rows = [
        (f"[`{name(f)}`]({name(f)}.md)", f.type, escaped(f.documentation)) for f in families_by_name
    ]
    intro = (
        "# Metrics of a live site\n\nWhat `GET /metrics` of [the HTTP API](../http-api.md) gives "
        "to Prometheus. Beside these are `process_*` of the controller itself."
    )
    listed = f"{intro}\n\n{table(('metric', 'type', 'what it is'), rows)}\n"
    return {"reference/metrics/prometheus.md": listed} | {
        f"reference/metrics/{name(f)}.md": _page(f) for f in families_by_name
    }


def _page(family: Metric) -> str:
    called = name(family)
    labels = sorted({label for sample in family.samples for label in sample.labels} - {"le"})
    lines = [
        f"# {called}",
        "*Of a live site, for Prometheus ([all](prometheus.md)).*",
        escaped(family.documentation),
        table(
            ("", ""),
            [
                ("type", family.type),
                ("labels", ", ".join(f"`{label}`" for label in labels) or "none"),
                ("in the code", "`penstock.live.http.metrics`"),
            ],
        ),
        "## Ask for it",
        fenced(expression(family, labels), "promql"),
    ]
    alerts = [rule for rule in _rules() if family.name in rule["expr"]]
    if alerts:
        rows = [(f"`{a['alert']}`", f"`{a['expr']}`", a["annotations"]["summary"]) for a in alerts]
        lines += [
            "## Alerts",
            "Of `deploy/prometheus/penstock.rules.yml`:",
            table(("alert", "when", "says"), rows),
        ]
    return "\n\n".join(lines) + "\n"


def expression(family: Metric, labels: list[str]) -> str:
    """Return what one would mostly ask Prometheus for."""
    by = f" by ({', '.join(labels)})" if labels else ""
    match family.type:
        case "counter":
            return f"sum{by} (rate({name(family)}[5m]))"
        case "histogram":
            return f"histogram_quantile(0.95, rate({family.name}_bucket[10m]))"
        case _:
            return name(family)


def _rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]
