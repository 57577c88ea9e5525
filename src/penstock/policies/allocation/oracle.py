"""oracle: every job alone with its best count, as if resources never ran out.

Not to be had, but an upper bound of what any allocation can give: paper forwarding, Section 5.4.
"""

from penstock.policies.allocation.best_bandwidth import BestBandwidth


class Oracle(BestBandwidth):
    """n_perf of every job; the sum may exceed the site's resources."""
