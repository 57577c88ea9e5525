"""The characteristic time of a job, estimated while it runs.

Paper io-sets, Section VII-B: measure the time between the starts of consecutive I/O phases, and let
an exponentially weighted mean follow changes. Time spent waiting for a turn or sharing bandwidth is
caused by the system, not by the job; so an iteration is the gap without I/O before a phase plus the
isolated time of the phase before it, not wall-clock time.

Simulations use the plain mean. A live job's estimator (`Period.live`) also starts from the estimate
of earlier runs of its application, detects a change instead of fading into it, and ignores small
moves, so that a job at the border of two sets stays in one.
"""

import copy
import math
from dataclasses import dataclass

HYSTERESIS = 10**0.1
"""A fifth of a set: how far the estimate may move before `stable_` follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """The estimate of earlier runs of a job's application."""

    w_iter: float
    observations: int = 1


class Changes:
    """Distinguishes a change of iteration times from noise and single outliers.

    A two-sided cumulative sum (Page, 1954) of deviations of the logarithms, in units of their
    spread: each deviation is capped, so that an alarm takes three large ones in a row, or more
    smaller ones. An outlier does not move the expected value, and widens the spread a little.
    """

    slack = 1.0
    cap = 3.0
    alarm = 5.5
    narrowest = 0.1
    """The least spread: a deviation below three times that is followed, not suspected."""
    widest_at_first = 0.25

    def __init__(self, gain: float) -> None:
        self.gain = gain
        self.variance_ = 0.0
        self.observations_ = 0
        self._centre = 0.0
        self._sums = [0.0, 0.0]
        self._suspects = [(0, 0.0), (0, 0.0)]

    def start(self, w_iter: float) -> None:
        """Expect iterations of `w_iter` seconds from now on."""
        self._centre = math.log(w_iter)
        self.observations_, self.variance_ = 1, 0.0
        self._sums, self._suspects = [0.0, 0.0], [(0, 0.0), (0, 0.0)]

    def observe(self, iteration: float) -> tuple[float, int]:
        """Return the iteration, capped if it is an outlier, and 0.

        At a change, return the mean of the iterations since the change, and their number.
        """
        if self.observations_ == 0:
            self.start(iteration)
            return iteration, 0
        early = self.widest_at_first**2 / self.observations_
        scale = math.sqrt(max(self.variance_, self.narrowest**2) + early)
        deviation = (math.log(iteration) - self._centre) / scale
        capped = min(max(deviation, -self.cap), self.cap)
        # New lists, so that a shallow copy keeps the state.
        self._sums, self._suspects = list(self._sums), list(self._suspects)
        for side, sign in enumerate((1.0, -1.0)):
            self._sums[side] = max(self._sums[side] + sign * capped - self.slack, 0.0)
            if self._sums[side] == 0:
                self._suspects[side] = (0, 0.0)
                continue
            # The first is left out: a change may fall into the middle of an iteration.
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

    The first observations are averaged evenly; from 1/`gain` observations on, each new one has the
    weight `gain`. Policies use `stable_`: it follows the estimate once the two differ by more than
    the factor `hysteresis`.
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
        self.stable_: float | None = None
        self.observations_ = 0
        self._iterations = 0
        self._changes = Changes(gain) if changes else None
        self._last_end: float | None = None
        self._last_io = 0.0
        self._began: float | None = None
        self._before: tuple[float | None, float | None, int, int, Changes] | None = None
        """The estimate before an iteration, to be restored if its phase is discarded."""
        if prior is not None and 0 < prior.w_iter < math.inf and prior.observations > 0:
            self.w_iter_ = self.stable_ = prior.w_iter
            self.observations_ = prior.observations
            if self._changes is not None:
                self._changes.start(prior.w_iter)

    @classmethod
    def live(cls, prior: Prior | None = None) -> "Period":
        """Return the estimator of a running job, with the estimate of its application's runs."""
        return cls(prior=prior, changes=True, hysteresis=HYSTERESIS)

    @property
    def std(self) -> float | None:
        """The standard deviation of iterations in seconds; None if unknown."""
        if self._changes is None or self.w_iter_ is None or self._changes.observations_ < 3:
            return None
        return self.w_iter_ * math.sqrt(self._changes.variance_)

    @property
    def iterations(self) -> int:
        """Iterations of this run; with none, the estimate is that of earlier runs."""
        return self._iterations

    @property
    def earlier_iterations(self) -> int:
        """The weight of earlier runs in the estimate, in iterations; a change of period ends it."""
        return max(self.observations_ - self._iterations, 0)

    @property
    def known(self) -> Prior | None:
        """What a later run of the application can start from; None without an iteration."""
        if self.w_iter_ is None or self._iterations == 0:
            return None
        return Prior(w_iter=self.w_iter_, observations=self.observations_)

    def began(self, time: float) -> float | None:
        """A phase begins: observe the iteration that is now complete, and return `stable_`."""
        self._began = time
        if self._last_end is not None and time >= self._last_end:
            if self._changes is not None:
                estimate = (self.w_iter_, self.stable_, self.observations_, self._iterations)
                self._before = (*estimate, copy.copy(self._changes))
            self._observe(time - self._last_end + self._last_io)
        return self.stable_

    def resumed(self) -> float | None:
        """The last phase, which ended without I/O, continues: its begin holds again."""
        if self._began is None or self._changes is None:  # nothing was restored
            return self.stable_
        return self.began(self._began)

    def ended(self, time: float, io: float) -> None:
        """A phase of `io` isolated seconds has ended; one without I/O never began."""
        if math.isfinite(time) and 0 < io < math.inf:
            self._last_end = time
            self._last_io = io
            self._before = None
        elif self._before is not None:
            before, self._before = self._before, None
            self.w_iter_, self.stable_ = before[:2]
            self.observations_, self._iterations, self._changes = before[2:]

    def _observe(self, iteration: float) -> None:
        if not 0 < iteration < math.inf:
            return
        self._iterations += 1
        self.observations_ += 1
        changed = 0
        if self._changes is not None:
            iteration, changed = self._changes.observe(iteration)
        if changed or self.w_iter_ is None:
            self.w_iter_ = iteration
            self.observations_ = max(changed, 1)
        else:
            self.w_iter_ += max(1 / self.observations_, self.gain) * (iteration - self.w_iter_)
        near = self.stable_ is not None and (
            self.stable_ / self.hysteresis < self.w_iter_ < self.stable_ * self.hysteresis
        )
        if not near:
            self.stable_ = self.w_iter_
