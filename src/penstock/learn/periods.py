"""The characteristic time of a job, learnt while it runs.

Paper io-sets, Section VII-B: watch the time between the starts of consecutive I/O phases, and let
an exponentially weighted mean follow changes. Time spent waiting for a turn or sharing bandwidth
is the system's doing, not the job's; so an iteration is counted as the gap without I/O before a
phase plus the isolated time of the phase before it, not as wall-clock time.

Simulations use the plain mean. A live job's estimator (`Period.live`) also starts from what earlier
runs of its family taught, notices a change instead of fading into it, and does not tell of small
moves, so that a job at the border of two sets stays in one.
"""

import math
from dataclasses import dataclass
from typing import Any

HYSTERESIS = 10**0.1
"""A fifth of a set: so far may the estimate move away from what was told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """What earlier runs of a job's family taught."""

    w_iter: float
    observations: int = 1


class Changes:
    """Tells a change of iteration times from noise and from single outliers, by their logarithms.

    A two-sided cumulative sum (Page, 1954) of deviations, in units of their spread: each is capped,
    so that it takes three large ones in a row to raise an alarm, or more of smaller ones. Outliers
    do not move what is expected, and widen the spread a little each.
    """

    slack = 1.0
    cap = 3.0
    alarm = 5.5
    narrowest = 0.1
    """The least spread: who deviates less than three times that is followed, not suspected."""
    widest_at_first = 0.25

    def __init__(self, gain: float) -> None:
        self.gain = gain
        self.variance_ = 0.0
        self.observations_ = 0
        self._centre = 0.0
        self._sums = [0.0, 0.0]
        self._suspects = [(0, 0.0), (0, 0.0)]

    def start(self, w_iter: float) -> None:
        """Expect iterations of so many seconds from now on."""
        self._centre = math.log(w_iter)
        self.observations_, self.variance_ = 1, 0.0
        self._sums, self._suspects = [0.0, 0.0], [(0, 0.0), (0, 0.0)]

    def observe(self, iteration: float) -> tuple[float, int]:
        """Return the iteration, capped if it is an outlier, and 0.

        Or, if it is the last of some that are a change, their mean, and how many they are.
        """
        if self.observations_ == 0:
            self.start(iteration)
            return iteration, 0
        early = self.widest_at_first**2 / self.observations_
        scale = math.sqrt(max(self.variance_, self.narrowest**2) + early)
        deviation = (math.log(iteration) - self._centre) / scale
        capped = min(max(deviation, -self.cap), self.cap)
        # New lists, so that a state can be kept and come back.
        self._sums, self._suspects = list(self._sums), list(self._suspects)
        for side, sign in enumerate((1.0, -1.0)):
            self._sums[side] = max(self._sums[side] + sign * capped - self.slack, 0.0)
            if self._sums[side] == 0:
                self._suspects[side] = (0, 0.0)
                continue
            # The first is left out: an iteration in which a change falls is half of the old kind.
            count, total = self._suspects[side]
            total += iteration if count else 0.0
            self._suspects[side] = (count + 1, total)
            if self._sums[side] > self.alarm:
                self.start(total / count)
                return total / count, count
        self._learn(capped, scale, outlier=capped != deviation)
        if capped == deviation:
            return iteration, 0
        return math.exp(self._centre + capped * scale), 0

    def _learn(self, capped: float, scale: float, *, outlier: bool) -> None:
        if outlier:
            square = (2 * scale) ** 2
            weight = self.gain
        else:
            self.observations_ += 1
            weight = max(1 / self.observations_, self.gain)
            self._centre += weight * capped * scale
            square = (capped * scale) ** 2
        self.variance_ += weight * (square - self.variance_)


class Period:
    """An online estimate of one job's w_iter.

    The first observations are averaged evenly; from 1/`gain` observations on, each new one counts
    for `gain`. `told_` is what is to be acted on: it follows the estimate once that has left it by
    more than the factor `hysteresis`.
    """

    def __init__(
        self,
        *,
        gain: float = 0.1,
        prior: Prior | None = None,
        changes: bool = False,
        hysteresis: float = 1.0,
    ) -> None:
        self.gain = gain
        self.hysteresis = hysteresis
        self.w_iter_: float | None = None
        self.told_: float | None = None
        self.observations_ = 0
        self._own = 0
        self._changes = Changes(gain) if changes else None
        self._last_end: float | None = None
        self._last_io = 0.0
        self._began: float | None = None
        self._before: tuple[dict[str, Any], dict[str, Any]] | None = None
        if prior is not None and 0 < prior.w_iter < math.inf and prior.observations > 0:
            self.w_iter_ = self.told_ = prior.w_iter
            self.observations_ = prior.observations
            if self._changes is not None:
                self._changes.start(prior.w_iter)

    @classmethod
    def live(cls, prior: Prior | None = None) -> "Period":
        """Return the estimator of a running job, with what is known of its family."""
        return cls(prior=prior, changes=True, hysteresis=HYSTERESIS)

    @property
    def std(self) -> float | None:
        """How far single iterations are from w_iter, in seconds; None: not known."""
        if self._changes is None or self.w_iter_ is None or self._changes.observations_ < 3:
            return None
        return self.w_iter_ * math.sqrt(self._changes.variance_)

    @property
    def iterations(self) -> int:
        """Iterations of this run that were taken in; none: what it tells is its family's."""
        return self._own

    @property
    def known(self) -> Prior | None:
        """What a later run of the job's family may start from; None: this one taught nothing."""
        if self.w_iter_ is None or self._own == 0:
            return None
        return Prior(w_iter=self.w_iter_, observations=self.observations_)

    def began(self, time: float) -> float | None:
        """A phase begins: take in the iteration that is now complete, and return what to act on."""
        self._began = time
        if self._last_end is not None and time >= self._last_end:
            if self._changes is not None:
                self._before = None
                self._before = (dict(vars(self)), dict(vars(self._changes)))
            self._observe(time - self._last_end + self._last_io)
        return self.told_

    def resumed(self) -> float | None:
        """The last phase, which ended without any I/O, goes on: it began when it did."""
        if self._began is None or self._changes is None:  # nothing was taken back
            return self.told_
        return self.began(self._began)

    def ended(self, time: float, io: float) -> None:
        """A phase of `io` isolated seconds has ended; without any it was none, and never began."""
        if math.isfinite(time) and 0 < io < math.inf:
            self._last_end = time
            self._last_io = io
            self._before = None
        elif self._before is not None and self._changes is not None:
            own, changes = self._before
            vars(self).update(own, _before=None)
            vars(self._changes).update(changes)

    def _observe(self, iteration: float) -> None:
        if not 0 < iteration < math.inf:
            return
        self._own += 1
        self.observations_ += 1
        changed = 0
        if self._changes is not None:
            iteration, changed = self._changes.observe(iteration)
        if changed or self.w_iter_ is None:
            self.w_iter_ = iteration
            self.observations_ = max(changed, 1)
        else:
            self.w_iter_ += max(1 / self.observations_, self.gain) * (iteration - self.w_iter_)
        near = self.told_ is not None and (
            self.told_ / self.hysteresis < self.w_iter_ < self.told_ * self.hysteresis
        )
        if not near:
            self.told_ = self.w_iter_
