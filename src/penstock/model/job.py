"""A job as a scheduler may know it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.model.curve import Curve

JobId = str
PRIOR = "prior"
"""The hint with the counts whose bandwidths are not the job's own: "1,2,4"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a policy may know of a job before and while it runs; a Workload has what really happens.

    `serial` is the order of submission and breaks every tie. `w_iter`, the characteristic time
    (paper io-sets, Definition 2: mean over iterations of compute plus isolated I/O), is an
    estimate, or None while nothing has been observed. `max_share` is the largest part of one
    resource that the job can use alone. `curve` is its bandwidth by number of resources, `volume`
    and `compute` what it moves (in the curve's unit) and computes (in seconds) in total, or in any
    fixed stretch of time, or, if `per_phase`, in one iteration; None if unknown. `host` is where it
    began; empty: the controller's own. `partition` is its batch system's, if that has I/O nodes of
    its own; empty: those that all other jobs use. `enforced`: it gets the resources decided for it;
    any other job uses all that it reaches. `hints` is what its user or a generator says about it.
    """

    id: JobId
    serial: int
    nodes: int = 1
    processes: int | None = None
    user: str = ""
    executable: str = ""
    w_iter: float | None = None
    max_share: float = 1.0
    curve: Curve | None = None
    volume: float | None = None
    compute: float | None = None
    per_phase: bool = False
    host: str = ""
    partition: str = ""
    enforced: bool = True
    hints: Mapping[str, float | str] = field(default_factory=dict)

    @property
    def own_curve(self) -> Curve | None:
        """Its curve without the points of a prior, or None."""
        if self.curve is None or PRIOR not in self.hints:
            return self.curve
        others = set(str(self.hints[PRIOR]).split(","))
        points = zip(self.curve.counts, self.curve.bandwidths, strict=True)
        own = {count: bandwidth for count, bandwidth in points if str(count) not in others}
        return Curve.of(own) if own else None
