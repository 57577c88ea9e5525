"""Observations of I/O nodes at an interval, while ranks replay a pattern."""

import threading
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from penstock.live.agent import runner
from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.model import Observation

MAX_INTERVALS = 4096


class ObservationPoller:
    """Asks I/O nodes, by their control sockets, for observations; a context manager."""

    def __init__(self, controls: Sequence[Path], interval: float) -> None:
        self._controls = controls
        self._interval = interval
        self._stopped = threading.Event()
        self._observations: list[deque[Observation]] = [
            deque(maxlen=MAX_INTERVALS) for _ in controls
        ]
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "ObservationPoller":
        with runner.blocked(runner.FORWARDED):  # signals are for the job
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def observations(self) -> list[list[Observation]]:
        """Return the observations of each I/O node, in their order; call it after the block."""
        if self._error is not None:
            raise launcher.LaunchError(f"an I/O node does not answer: {self._error}")
        return [list(one) for one in self._observations]

    def _run(self) -> None:
        try:
            with ExitStack() as stack:
                nodes = [
                    stack.enter_context(ControlConnection(control)) for control in self._controls
                ]
                while not self._stopped.wait(self._interval):
                    for observations, node in zip(self._observations, nodes, strict=True):
                        answer = node.ask(messages.GetObservation(), messages.NodeObservation)
                        observations.append(answer.to_observation())
        except Exception as error:
            self._error = error
