"""longest-first: one job at a time, the longest I/O phase first.

A policy of your own in fifteen lines. Run it like any other:

    penstock simulate jobs.json --policy examples/longest_first.py:LongestFirst
"""

from penstock.policies.base import ByArrival


class LongestFirst(ByArrival):
    needs = frozenset({"io"})
    order = None  # the engine shall call turn()

    def group(self, job):
        return "all"

    def turn(self, request, view):
        return -request.io
