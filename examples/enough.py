"""enough: every job gets the fewest I/O nodes that give it 90% of its best bandwidth.

An allocator from a file. Run it like any other:

    penstock allocate examples/applications.json --io-nodes 12 --policy examples/enough.py:Enough
"""


class Enough:
    needs = frozenset({"curve"})
    sticky = False  # may running jobs be moved?

    def __init__(self, *, part: float = 0.9):
        self.part = part

    def allocate(self, view):
        return {name: self.fewest(job.curve, view.site) for name, job in view.jobs.items()}

    def fewest(self, curve, site):
        counts = curve.choices(site.resources, direct=site.direct)
        best = max(curve.bandwidth(n) for n in counts)
        return next(n for n in counts if curve.bandwidth(n) >= self.part * best)
