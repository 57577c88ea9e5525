"""Paper forwarding, Section 5.6.2: six applications of Grid'5000 under the registered policies.

STATIC needs the machine's compute nodes, which the thesis does not print: 384 here, the smallest
number that gives Table 5.3's STATIC column (any from 384 to 767 does).
"""

from collections.abc import Mapping
from typing import Any

from penstock import registry
from penstock.campaign.cells import Cell
from penstock.campaign.journal import Value
from penstock.data import COUNTS, Application, g5k_applications
from penstock.model import Site, Snapshot
from penstock.studies.forwarding_policies.sets import SITE_NODES

SCENARIO = "applications"
NAMES = ("BT-C", "BT-D", "IOR-MPI", "POSIX-L", "MAD", "S3D")
MOST = 48
"""Eight I/O nodes for each: as many as were measured."""
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "zero": {},
    "one": {},
    "static": {"measured": True, "rule": "ceil"},
    "size": {"direct": True},
    "process": {"direct": True},
    "mckp": {},
    "oracle": {},
}
"""The policies with the options that Chapter 5 means; measured counts only."""


def six_applications() -> list[Application]:
    """Return the six applications."""
    return [g5k_applications()[name] for name in NAMES]


def allocate(policy: str, io_nodes: int) -> dict[str, int]:
    """Return what a policy gives each application."""
    site = Site(nodes=SITE_NODES, resources=io_nodes, direct=True)
    jobs = [application.job(serial) for serial, application in enumerate(six_applications())]
    allocator = registry.policy("allocation", policy, OPTIONS[policy])
    return dict(allocator.allocate(Snapshot.of(jobs, site)))


def alone(application: Application, io_nodes: int) -> float:
    """Return the best that the application reaches alone with up to that many I/O nodes."""
    return max(application.curve.bandwidth(n) for n in COUNTS if n <= io_nodes)


def run_cell(cell: Cell) -> list[dict[str, Value]]:
    """Return one row per application, policy and number of I/O nodes."""
    return [
        {
            "scenario": cell.scenario,
            "x": io_nodes,
            "workload": cell.workload,
            "policy": policy,
            "job": application.label,
            "io_nodes": counts[application.label],
            "bandwidth": application.curve.bandwidth(counts[application.label]),
            "alone": alone(application, io_nodes),
        }
        for io_nodes in range(1, MOST + 1)
        for policy in OPTIONS
        for counts in [allocate(policy, io_nodes)]
        for application in six_applications()
    ]
