"""The characteristic time of a job, learnt while it runs.

Paper io-sets, Section VII-B: watch the time between the starts of consecutive I/O phases, and let
an exponentially weighted mean follow changes. Time spent waiting for a turn or sharing bandwidth
is the system's doing, not the job's; so an iteration is counted as the gap without I/O before a
phase plus the isolated time of the phase before it, not as wall-clock time.

Simulations use the plain mean. A live job's estimator (`Period.live`) also starts from what earlier
runs of its family taught, notices a change instead of fading into it, and does not tell of small
moves, so that a job at the border of two sets stays in one.
"""

import copy
import math
from dataclasses import dataclass

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
    so that it takes three large ones in a row to raise an alarm, or more of smaller ones.
    """

    slack = 1.0
    cap = 3.0
    alarm = 5.5
    narrowest = 0.1
    """The least spread: who deviates less than three times that is followed, not suspected."""
    first = 0.25

    def __init__(self, gain: float) -> None:
        self.gain = gain
        self.spread_ = self.first
        self._centre: float | None = None
        self._observations = 0
        self._sums = [0.0, 0.0]
        self._suspects = [(0, 0.0), (0, 0.0)]

    def start(self, w_iter: float) -> None:
        """Expect iterations of so many seconds from now on."""
        self._centre = math.log(w_iter)
        self._observations = 1
        self._sums, self._suspects = [0.0, 0.0], [(0, 0.0), (0, 0.0)]

    def observe(self, iteration: float) -> tuple[int, float] | bool:
        """Return True: as expected; False: an outlier; or, after a change, what is new.

        What is new is the number of iterations since the change, and their mean.
        """
        if self._centre is None:
            self.start(iteration)
            return True
        scale = max(self.spread_, self.narrowest)
        deviation = math.log(iteration) - self._centre
        capped = min(max(deviation / scale, -self.cap), self.cap)
        for side, sign in enumerate((1.0, -1.0)):
            self._sums[side] = max(self._sums[side] + sign * capped - self.slack, 0.0)
            if self._sums[side] == 0:
                self._suspects[side] = (0, 0.0)
                continue
            count, total = self._suspects[side]
            count, total = self._suspects[side] = (count + 1, total + iteration)
            if self._sums[side] > self.alarm:
                self.start(total / count)
                return count, total / count
        self._observations += 1
        weight = max(1 / self._observations, self.gain)
        self._centre += weight * capped * scale
        # The first spread counts as some observations, or two alike iterations would make it none.
        weight = max(1 / (self._observations + 4), self.gain)
        variance = self.spread_**2 + weight * ((capped * scale) ** 2 - self.spread_**2)
        self.spread_ = math.sqrt(variance)
        return abs(deviation) <= self.cap * scale


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
        self._before: Period | None = None
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
        if self._changes is None or self.w_iter_ is None or self._own < 2:
            return None
        return self.w_iter_ * self._changes.spread_

    @property
    def known(self) -> Prior | None:
        """What a later run of the job's family may start from; None: this one taught nothing."""
        if self.w_iter_ is None or self._own == 0:
            return None
        return Prior(w_iter=self.w_iter_, observations=self.observations_)

    def began(self, time: float) -> float | None:
        """A phase begins: take in the iteration that is now complete, and return what to act on."""
        if self._last_end is not None and time >= self._last_end:
            if self._changes is not None:
                self._before = None
                self._before = copy.deepcopy(self)
            self._observe(time - self._last_end + self._last_io)
        return self.told_

    def ended(self, time: float, io: float) -> None:
        """A phase of `io` isolated seconds has ended; without any it was none, and never began."""
        if math.isfinite(time) and 0 < io < math.inf:
            self._last_end = time
            self._last_io = io
            self._before = None
        elif self._before is not None:
            vars(self).update(vars(self._before))

    def _observe(self, iteration: float) -> None:
        if not 0 < iteration < math.inf:
            return
        verdict = True if self._changes is None else self._changes.observe(iteration)
        self._own += 1
        if isinstance(verdict, tuple):
            self.observations_, self.w_iter_ = verdict
        elif verdict:
            self.observations_ += 1
            if self.w_iter_ is None:
                self.w_iter_ = iteration
            else:
                self.w_iter_ += max(1 / self.observations_, self.gain) * (iteration - self.w_iter_)
        self._tell()

    def _tell(self) -> None:
        if self.w_iter_ is None:
            return
        if self.told_ is None or not (
            self.told_ / self.hysteresis < self.w_iter_ < self.told_ * self.hysteresis
        ):
            self.told_ = self.w_iter_
