"""The status of a deployment, for `penstock status`, `top` and the API."""

import asyncio
import socket
from typing import TYPE_CHECKING, Any

from msgspec import structs

from penstock.files import reason
from penstock.live.controller.io_nodes import IoNode
from penstock.live.deployment.spec import ANSWER_TIMEOUT
from penstock.live.protocol import messages
from penstock.live.protocol.io_node_record import IoNodeRecord

if TYPE_CHECKING:
    from penstock.live.controller.controller import Controller


async def site_status(controller: "Controller") -> messages.Status:
    """Return what a controller knows, and what its I/O nodes answer."""
    turn_service = controller.turn_service
    io_nodes = await asyncio.gather(
        *(_io_node(controller, io_node) for io_node in controller.io_nodes.nodes)
    )
    totals = controller.jobs.totals()
    return messages.Status(
        site=socket.gethostname(),
        roots=controller.deployment.roots,
        emulated=controller.deployment.emulate,
        jobs=controller.job_records(),
        io_nodes=list(io_nodes),
        forwarded_bytes=totals.forwarded_bytes,
        direct_bytes=totals.direct_bytes,
        fail_open_total=totals.fail_opens,
        policy=turn_service.policy,
        mode=turn_service.modes.site,
        modes=turn_service.modes.users,
        turns=turn_service.turns.turns,
        tuning=None if controller.tuning is None else controller.tuning.status(),
        refused=controller.refusals.total,
        policy_failures=turn_service.failures,
    )


async def _io_node(controller: "Controller", io_node: IoNode) -> IoNodeRecord:
    record = IoNodeRecord(
        number=io_node.number,
        alive=io_node.node is not None,
        state=io_node.absence,
        deaths=io_node.deaths,
        jobs=controller.io_node_map.on(io_node.number),
    )
    if io_node.node is None:
        return record
    fields: dict[str, Any] = {"pid": io_node.node.pid, "id": io_node.node.id}
    if controller.tuning is not None:
        fields |= structs.asdict(controller.tuning.node(io_node.number))
    try:
        answer = await controller.io_nodes.ask(
            io_node.number, messages.GetCounters(), messages.NodeCounters
        )
        if not isinstance(answer, messages.Failure):
            counters = structs.asdict(answer)
            del counters["node"]
            return structs.replace(record, **fields | counters | {"state": "serving"})
        why = answer.error
    except TimeoutError:
        why = f"no answer came within {ANSWER_TIMEOUT:g} s"
    except OSError as error:
        why = reason(error)
    silent, why = io_node.silence(why)
    return structs.replace(record, **fields, state="not answering", silent_seconds=silent, why=why)
