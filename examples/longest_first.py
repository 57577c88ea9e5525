"""longest-first: one job at a time, the longest I/O phase first.

A policy from a file, in fifteen lines. Run it like any other:

    penstock simulate jobs.json --policy examples/longest_first.py:LongestFirst
"""

from penstock.policies.base import ByArrival


class LongestFirst(ByArrival):
    needs = frozenset({"io"})

    def group(self, job):
        return "all"

    def turn(self, request, view):
        return float("inf") if request.io is None else -request.io  # not known: last
