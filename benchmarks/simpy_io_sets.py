"""The IO-SETS scenario on SimPy 4: one process per job, one FIFO resource per group."""

from __future__ import annotations

import time
from collections.abc import Generator
from heapq import heappop, heappush

import numpy as np
import simpy
from numpy.typing import ArrayLike
from workload_file import Seconds, Workload


class SharedResource:
    """Capacity 1, shared by the transfers under way in proportion to their weights.

    SimPy has no processor sharing of its own. Virtual time advances at
    1 / (sum of the weights), so a transfer of ``size`` and ``weight`` ends
    size / weight after it starts in virtual time, whoever comes or goes
    meanwhile: one heap orders the ends, and a change touches one entry of it.
    """

    def __init__(self, env: simpy.Environment) -> None:
        self.env = env
        self.virtual_now = 0.0
        self.updated = 0.0
        self.weights = 0.0
        self.ends: list[tuple[float, int, float, simpy.Event]] = []
        self.started = 0
        self.wake_up: simpy.Event | None = None

    def transfer(self, size: float, weight: float) -> simpy.Event:
        """An event that triggers when ``size`` isolated seconds of I/O are done."""
        self._advance()
        done = self.env.event()
        heappush(self.ends, (self.virtual_now + size / weight, self.started, weight, done))
        self.started += 1
        self.weights += weight
        self._schedule()
        return done

    def _advance(self) -> None:
        if self.ends:
            self.virtual_now += (self.env.now - self.updated) / self.weights
        self.updated = self.env.now

    def _schedule(self) -> None:
        delay = (self.ends[0][0] - self.virtual_now) * self.weights
        # Rounding may leave the earliest end just behind the virtual clock.
        self.wake_up = self.env.timeout(max(delay, 0.0))
        self.wake_up.callbacks.append(self._finish)

    def _finish(self, wake_up: simpy.Event) -> None:
        # SimPy cannot withdraw a timeout; one that a later change replaced is let pass.
        if wake_up is not self.wake_up:
            return
        self.updated = self.env.now
        self.virtual_now, _, weight, done = heappop(self.ends)
        done.succeed()
        if self.ends:
            self.weights -= weight
            self._schedule()
        else:
            # An idle resource restarts from zero, so rounding never piles up.
            self.weights = self.virtual_now = 0.0
            self.wake_up = None


def run(workload: Workload, group: ArrayLike, weight: ArrayLike) -> tuple[Seconds, Seconds, float]:
    """Simulate; return when each I/O was requested, when it ended, and the wall seconds.

    ``group`` is -1 for a job that never waits for a turn; requests of the very
    same instant queue in the order in which their compute phases began. The
    seconds cover ``Environment.run`` alone.
    """
    # Plain floats: NumPy scalars would slow every operation of the event loop.
    release, offsets = np.asarray(workload.release).tolist(), np.asarray(workload.offsets).tolist()
    compute, io = np.asarray(workload.compute).tolist(), np.asarray(workload.io).tolist()
    group_of, weight_of = np.asarray(group).tolist(), np.asarray(weight).tolist()
    request, end = [0.0] * len(io), [0.0] * len(io)

    env = simpy.Environment()
    resource = SharedResource(env)
    turns = {g: simpy.Resource(env, capacity=1) for g in group_of if g >= 0}

    def job(j: int) -> Generator[simpy.Event, object, None]:
        turn = turns.get(group_of[j])
        yield env.timeout(release[j])
        for i in range(offsets[j], offsets[j + 1]):
            yield env.timeout(compute[i])
            request[i] = env.now
            if turn is None:
                yield resource.transfer(io[i], weight_of[j])
            else:
                with turn.request() as my_turn:
                    yield my_turn
                    yield resource.transfer(io[i], weight_of[j])
            end[i] = env.now

    for j in range(len(release)):
        env.process(job(j))
    start = time.perf_counter()
    env.run()
    seconds = time.perf_counter() - start
    return np.array(request), np.array(end), seconds
