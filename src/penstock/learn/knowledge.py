"""What is known of an application: what its phases showed, and what was imported.

Imported knowledge is used until there are enough observations of the same thing. Of what neither
has shown, nothing is known: no value is inferred from another number of I/O nodes. Where fewer than
two bandwidths are known, those that the application's class suggests are added, as a prior.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from penstock.learn.access_class import LEAST_POINTS, AccessClass, ClassCurve
from penstock.learn.imported import NOTHING_IMPORTED, Imported
from penstock.learn.observations import History, ObservedPhase, Spread
from penstock.learn.tuned import TunedValues
from penstock.units import show_count

ENOUGH = 3
"""Observations that replace an imported value: the median of three stands one that is unusual."""

LOWER_BOUND = "lower bound"
"""The source of a curve of phases beside others, which had their I/O nodes to themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What is known of an application; values that are not known are None, or missing."""

    history: History = field(default_factory=History)
    imported: Imported = NOTHING_IMPORTED
    pattern: str | None = None
    request_size: int | None = None  # bytes, rounded down to a power of two
    tuned: TunedValues = field(default_factory=TunedValues)
    updated: float = 0.0  # seconds since the epoch
    prior: ClassCurve | None = None  # of its class, which is not stored with it

    def plus(self, io_nodes: int, phase: ObservedPhase, now: float) -> "Knowledge":
        """Return the knowledge after one more phase."""
        return replace(self, history=self.history.plus(io_nodes, phase), updated=now)

    @property
    def access_class(self) -> AccessClass | None:
        """Its class, if its access pattern is known."""
        return AccessClass.of(self.pattern, self.request_size)

    @property
    def curve(self) -> dict[int, Spread]:
        """Bytes per second by number of I/O nodes, with those of the prior.

        Where nothing else is known, they are lower bounds: of phases beside others.
        """
        own = self.own_curve
        return dict(sorted((own | self._prior_points(own)).items())) or self.history.lower_bounds

    @property
    def why_unknown(self) -> str:
        """Say why no bandwidth is known that it has alone, though it has run; empty: one is."""
        phases = self.history.never_alone
        if not phases or self.own_curve:
            return ""
        least = " (at most lower bounds are known)" if self.history.lower_bounds else ""
        listed = show_count(phases, "remembered phase")
        if self.history.only_short:
            return (
                f"nothing is known of its curve{least}, because its {listed} took less than 0.1 s, "
                "too short to measure; import a curve"
            )
        return (
            f"nothing is known of its curve{least}, because none of its {listed} was alone on the "
            "file system for 0.1 s or longer; run it at a quiet time, or import a curve"
        )

    @property
    def own_curve(self) -> dict[int, Spread]:
        """The same without the prior: observed, or imported."""
        observed = self.history.curve
        return {
            n: point
            for n in sorted({*observed, *self.imported.curve})
            if (point := _chosen(observed.get(n), self.imported.curve.get(n))) is not None
        }

    @property
    def bandwidths(self) -> Mapping[int, float]:
        """The medians of the curve."""
        return {n: spread.median for n, spread in self.curve.items()}

    @property
    def prior_counts(self) -> list[int]:
        """The numbers of I/O nodes whose bandwidth is that of the prior."""
        return sorted(self._prior_points(self.own_curve))

    @property
    def source(self) -> str:
        """Where the points of the curve are from: observed, imported, a prior, several of them,
        lower bounds, or none.
        """
        own = self.own_curve
        kinds = {"observed" if point.observations else "imported" for point in own.values()}
        if self._prior_points(own):
            kinds.add("prior")
        named = [kind for kind in ("observed", "imported", "prior") if kind in kinds]
        return " and ".join(named) or (LOWER_BOUND if self.history.lower_bounds else "none")

    def _prior_points(self, own: Mapping[int, Spread]) -> dict[int, Spread]:
        if self.prior is None or len(own) >= LEAST_POINTS:
            return {}
        return self.prior.points(own)

    @property
    def volume(self) -> Spread | None:
        """Bytes per phase."""
        return _chosen(self.history.volume, self.imported.volume)

    @property
    def compute(self) -> Spread | None:
        """Seconds of computation per phase."""
        return _chosen(self.history.compute, self.imported.compute)

    @property
    def w_iter(self) -> Spread | None:
        """Seconds per iteration."""
        return _chosen(self.history.w_iter, self.imported.w_iter)

    @property
    def iterations(self) -> int:
        """Iterations behind `w_iter`: what it weighs against those of a new run."""
        w_iter = self.w_iter
        if w_iter is None:
            return 0
        return w_iter.observations or self.imported.iterations


def _chosen(observed: Spread | None, imported: float | None) -> Spread | None:
    if imported is None or (observed is not None and observed.observations >= ENOUGH):
        return observed
    return Spread(median=imported, low=imported, high=imported, observations=0)
