"""short-cycles-first: one job at a time; of those that wait, the one of the shortest cycle.

A cycle is w_iter, the time from one I/O phase of a job to its next. Who writes often and little
does not stand behind who writes rarely and much. Users are asked nothing: w_iter is learned.
"""

import math

from penstock.policies.base import ByArrival


class ShortCyclesFirst(ByArrival):
    needs = frozenset({"w_iter"})
    order = None  # turn() is asked ...
    dynamic = True  # ... again at each decision, since it changes while a job waits

    def __init__(self, *, patience: float = 60.0):
        self.patience = patience  # seconds after which a job goes first whatever its cycle is

    def group(self, job):
        return "all"  # with whom it takes turns

    def turn(self, request, view):
        if view.now - request.arrival > self.patience:
            return 0.0
        return math.inf if request.job.w_iter is None else request.job.w_iter
