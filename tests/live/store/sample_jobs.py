"""Jobs and families for tests of the store."""

from typing import Any

from penstock.learn.imported import Imported
from penstock.learn.observations import History, ObservedPhase
from penstock.live.protocol.job_record import JobRecord
from penstock.live.store import Family, Knowledge

KNOWN = Knowledge(
    history=History(
        {
            4: (
                ObservedPhase(bytes=10**9, seconds=2.5, alone=True, compute=10.0, first=True),
                ObservedPhase(bytes=10**9, seconds=5.0, alone=False),
            )
        }
    ),
    imported=Imported(curve={0: 1e8, 4: 4e8}, w_iter=12.5, iterations=3),
    pattern="strided",
    updated=1000.0,
)


def family(nodes: int = 4, *, user: str = "ann", executable: str = "/apps/ior") -> Family:
    return Family(user=user, executable=executable, nodes=nodes)


def running(serial: int, **more: Any) -> JobRecord:
    known: dict[str, Any] = {
        "id": f"ior.{serial}",
        "serial": serial,
        "user": "ann",
        "uid": 1000,
        "name": "ior",
        "began": 100.25,
        "pid": 77,
        "command": ["ior", "-t", "1m"],
        "executable": "/apps/ior",
        "nodes": 4,
        "processes": 64,
        "requested_io_nodes": 2,
        "state": "running",
        "seconds": 0.0,
        "io_nodes": [],
        "forwarded_bytes": 0,
        "direct_bytes": 5 << 40,
        "fail_opens": 0,
        "waits": 0,
        "waited_seconds": 0.0,
        "counters": {"writes": 5, "write_bytes": 5 << 40},
        "phases": 3,
        "phase_seconds": 2.5,
    }
    return JobRecord(**known | more)


def ended(serial: int, **more: Any) -> JobRecord:
    known: dict[str, Any] = {
        "id": f"ior.{serial}",
        "serial": serial,
        "user": "ann",
        "uid": 1000,
        "name": "ior",
        "began": 100.25,
        "ended": 2e9 + serial,
        "seconds": 2e9 + serial - 100.25,
        "io_nodes": [],
        "waits": 0,
        "state": "ended",
        "status": 0,
        "command": ["ior", "-t", "1m"],
        "executable": "/apps/ior",
        "nodes": 4,
        "forwarded_bytes": 10,
        "direct_bytes": 7,
        "waited_seconds": 0.5,
        "fail_opens": 1,
        "phases": 3,
        "phase_seconds": 2.5,
    }
    return JobRecord(**known | more)
