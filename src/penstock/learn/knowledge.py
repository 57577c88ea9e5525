"""What is known of an application: what its phases showed, and what was imported.

Imported knowledge is used until there are enough observations of the same thing. Of what neither
has shown, nothing is known: no value is inferred from another number of I/O nodes. Where fewer than
two bandwidths are known, those that the application's class suggests are added, as a prior.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import msgspec

from penstock.errors import InputError, error_prefix
from penstock.learn.access_class import LEAST_POINTS, AccessClass, ClassCurve
from penstock.learn.observations import MOST_COUNTS, History, ObservedPhase, Spread
from penstock.learn.tuned import TunedValues

LARGEST = 1e18
"""What no count, volume or bandwidth exceeds."""
LONGEST_KEY = 512
"""Bytes of a user's or an application's name; keys of PostgreSQL's index have at most 2,704."""
MOST_IMPORTED = 500
"""Applications that are imported at once: all of them, or none."""
ENOUGH = 3
"""Observations that replace an imported value: the median of three stands one that is unusual."""


class Imported(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a file, or an earlier version of the store, says of an application."""

    curve: dict[int, float] = {}  # bytes per second by number of I/O nodes
    volume: float | None = None  # bytes per phase
    compute: float | None = None  # seconds per phase
    w_iter: float | None = None  # seconds
    iterations: int = 1  # that w_iter is from

    def check(self, most: int | None = None) -> None:
        """Raise InputError unless this can be imported; a site has `most` I/O nodes, if known."""
        if self.curve and len(self.curve) < 2:
            raise InputError(
                f"the curve has one count, {next(iter(self.curve))}: it says nothing of any other "
                "number of I/O nodes; give two or more"
            )
        if len(self.curve) > MOST_COUNTS:
            raise InputError(f"the curve has {len(self.curve)} counts; give at most {MOST_COUNTS}")
        for count, bandwidth in self.curve.items():
            if not 0 <= count <= (LARGEST if most is None else most):
                there = "counts are zero or more" if most is None else f"the site has {most}"
                raise InputError(f"the curve has a bandwidth for {count} I/O nodes; {there}")
            _check(f"the bandwidth with {count} I/O nodes", bandwidth, "bytes per second")
        for name, unit in (("volume", "bytes"), ("compute", "seconds"), ("w_iter", "seconds")):
            if (value := getattr(self, name)) is not None:
                _check(name, value, unit, zero=name == "compute")
        if not (self.curve or self.volume or self.compute is not None or self.w_iter):
            raise InputError("nothing is said of it; give a curve, volume, compute or w_iter")

    def over(self, old: "Imported") -> "Imported":
        """Return this, with what only the older one has."""
        return Imported(
            curve={**old.curve, **self.curve},
            volume=old.volume if self.volume is None else self.volume,
            compute=old.compute if self.compute is None else self.compute,
            w_iter=old.w_iter if self.w_iter is None else self.w_iter,
            iterations=old.iterations if self.w_iter is None else self.iterations,
        )


class ImportedApplication(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says of one application."""

    user: str = ""  # empty: the file does not say
    application: str
    nodes: int = 1
    imported: Imported

    def check(self, most: int | None = None) -> None:
        """Raise InputError unless this can be imported; a site has `most` I/O nodes, if known."""
        with error_prefix(f"application {self.application[:40]!r}"):
            for name in (self.user, self.application):
                if len(name.encode("utf-8", "replace")) > LONGEST_KEY:
                    raise InputError(
                        f"a name has {len(name):,} characters; give at most {LONGEST_KEY} bytes"
                    )
            if not self.application:
                raise InputError("its name is empty; give one")
            if self.nodes < 1:
                raise InputError(f"nodes is {self.nodes}; give 1 or more")
            self.imported.check(most)


def _check(what: str, value: float, unit: str, *, zero: bool = False) -> None:
    if not (0 if zero else 1e-9) <= value <= LARGEST:  # false for NaN, too
        least = "zero or more" if zero else "a positive number of"
        raise InputError(f"{what} is {value:g}; give {least} {unit}, at most {LARGEST:g}")


NOTHING_IMPORTED = Imported()


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
        """Bytes per second by number of I/O nodes, with those of the prior."""
        own = self.own_curve
        return dict(sorted((own | self._prior_points(own)).items()))

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
        """Where the points of the curve are from: observed, imported, a prior, several, or none."""
        own = self.own_curve
        kinds = {"observed" if point.observations else "imported" for point in own.values()}
        if self._prior_points(own):
            kinds.add("prior")
        named = [kind for kind in ("observed", "imported", "prior") if kind in kinds]
        return " and ".join(named) or "none"

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
