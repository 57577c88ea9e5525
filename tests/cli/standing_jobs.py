"""Jobs as a controller lists them."""

from typing import Any

from penstock.live.protocol import messages
from penstock.live.protocol.io_node_record import IoNodeRecord
from penstock.live.protocol.job_record import JobRecord

MIB = 1 << 20


def job(id: str, **changes: Any) -> JobRecord:
    """A job that runs under enforced turns, and computes."""
    fields: dict[str, Any] = {
        "id": id,
        "name": id.rpartition(".")[0],
        "user": "me",
        "pid": 1,
        "command": ["solver", "-n", "4"],
        "state": "running",
        "status": None,
        "began": 0.0,
        "seconds": 100.0,
        "io_nodes": [0, 1],
        "forwarded_bytes": 0,
        "direct_bytes": 0,
        "fail_opens": 0,
        "waits": 0,
        "waited_seconds": 0.0,
        "counters": {},
        "mode": "enforce",
        "doing": "computing",
        "since_seconds": None,
        "at_most_seconds": None,
        "behind": [],
        "share": 0.0,
        "group": "1",
        "weight": 0.1,
        "w_iter": None,
        "iterations": 0,
        "phases": 0,
        "phase_bytes": None,
        "turn_waited_seconds": 0.0,
        "bandwidth": None,
    }
    return JobRecord(**fields | changes)


def node(number: int, **changes: Any) -> IoNodeRecord:
    fields: dict[str, Any] = {
        "number": number,
        "id": 100 + number,
        "state": "serving",
        "jobs": ["a.1"],
    }
    fields |= {"alive": True, "deaths": 0, "queued": 0, "read_bytes": 0, "write_bytes": 0}
    fields |= changes
    fields.setdefault("bytes", (fields["read_bytes"] or 0) + (fields["write_bytes"] or 0))
    return IoNodeRecord(**fields)


def status(*jobs: JobRecord, **changes: Any) -> messages.Status:
    fields: dict[str, Any] = {
        "site": "here",
        "jobs": list(jobs),
        "io_nodes": [node(0), node(1)],
        "forwarded_bytes": 0,
        "direct_bytes": 0,
        "fail_open_total": 0,
        "policy": "set-10",
        "mode": "enforce",
    }
    return messages.Status(**fields | changes)
