"""short-first: one job at a time, the one with the shortest period; it interrupts longer ones.

A policy from a file, in fifteen lines, simulated and live:

    penstock compare jobs.json --policies set-10,examples/short_first.py:ShortFirst
    penstock up --root data --io-nodes 1 --policy examples/short_first.py:ShortFirst --mode enforce
"""

from penstock.policies.base import ByArrival


class ShortFirst(ByArrival):
    needs = frozenset({"w_iter"})  # the time from one I/O phase of a job to the next
    preemptive = True  # choose again whenever a phase begins or ends

    def group(self, job):
        return "all"

    def turn(self, request, view):
        return request.job.w_iter or float("inf")  # not known yet: last
