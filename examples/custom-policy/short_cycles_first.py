"""short-cycles-first: one job at a time; of those that wait, the one with the shortest cycle.

A cycle is w_iter, the time from one I/O phase of a job to the next. A job that writes often and
little does not wait behind jobs that write rarely and much. w_iter is learned, not declared.
"""

import math

from penstock.policies.base import ByArrival


class ShortCyclesFirst(ByArrival):
    needs = frozenset({"w_iter"})
    dynamic = True  # turn() is called at each decision, because it changes while a job waits

    def __init__(self, *, patience: float = 60.0):
        self.patience = patience  # seconds after which a job goes first whatever its cycle is

    def group(self, job):
        return "all"  # all jobs take turns with each other

    def turn(self, request, view):
        if view.now - request.arrival > self.patience:
            return 0.0
        return math.inf if request.job.w_iter is None else request.job.w_iter
