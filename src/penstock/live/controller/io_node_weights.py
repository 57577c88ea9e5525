"""The weights of jobs' queues at the I/O nodes: the latest are sent, one set after the other.

A job that has its turn on other I/O nodes only has at this one what the others leave.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping

from penstock.core.manager import SQUEEZED
from penstock.files import reason
from penstock.live.controller.io_nodes import IoNodes
from penstock.live.protocol import messages
from penstock.model import JobId, ResourceId

OutOfTurn = Mapping[ResourceId, Collection[JobId]]
"""The jobs, by I/O node, that have what others leave of it."""
log = logging.getLogger("penstock.controller")


def squeeze(weights: Mapping[JobId, float], rest: Collection[JobId]) -> dict[JobId, float]:
    """Return the weights with those of some jobs so small that they have what the others leave."""
    return {job: weight * SQUEEZED if job in rest else weight for job, weight in weights.items()}


class IoNodeWeights:
    """Sends weights to all I/O nodes that serve; `group` is the name of a job's queue there."""

    def __init__(
        self,
        io_nodes: IoNodes,
        group: Callable[[JobId], str | None],
        *,
        named: Callable[[], Collection[JobId]] = tuple,
    ) -> None:
        """`named` returns jobs that the I/O nodes must know by name: of all others, those of a user
        share as one.
        """
        self._io_nodes, self._group, self._named = io_nodes, group, named
        self._weights: Mapping[JobId, float] = {}
        self._out_of_turn: OutOfTurn = {}
        self._changed = False
        self._sending: asyncio.Task[None] | None = None

    def set(self, weights: Mapping[JobId, float], out_of_turn: OutOfTurn) -> None:
        """Send these weights, of all jobs that have one."""
        self._weights, self._out_of_turn = weights, out_of_turn
        self._send_soon()

    def send_again(self) -> None:
        """An I/O node is new: it has no weights yet."""
        if self._weights or self._named():
            self._send_soon()

    def job_began(self) -> None:
        """A job has a name that the I/O nodes may not know yet."""
        if self._named():
            self._send_soon()

    def _on(self, io_node: ResourceId) -> dict[str, float]:
        """Return the weights of queues at an I/O node."""
        known = dict.fromkeys(self._named(), 1.0) | dict(self._weights)
        weights = squeeze(known, self._out_of_turn.get(io_node, ()))
        return {
            group: weight
            for job, weight in weights.items()
            if (group := self._group(job)) is not None
        }

    def _send_soon(self) -> None:
        self._changed = True
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        while self._changed:
            self._changed = False
            for io_node in self._io_nodes.nodes:
                if io_node.node is None:
                    continue
                message = messages.SetWeights(weights=self._on(io_node.number))
                try:
                    await self._io_nodes.ask(io_node.number, message, messages.Done)
                except OSError as error:
                    log.warning(
                        "I/O node %d did not take the weights: %s", io_node.number, reason(error)
                    )
