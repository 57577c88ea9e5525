"""The characteristic time of a job, learnt while it runs.

Paper io-sets, Section VII-B: watch the time between the starts of consecutive I/O phases, and let
an exponentially weighted mean follow changes. Time spent waiting for a turn or sharing bandwidth
is the system's doing, not the job's; so an iteration is counted as the gap without I/O before a
phase plus the isolated time of the phase before it, not as wall-clock time.
"""


class Period:
    """An online estimate of one job's w_iter.

    The first observations are averaged evenly; from 1/`gain` observations on, each new one counts
    for `gain`.
    """

    def __init__(self, *, gain: float = 0.1) -> None:
        self.gain = gain
        self.w_iter_: float | None = None
        self.observations_ = 0
        self._last_end: float | None = None
        self._last_io = 0.0

    def began(self, time: float) -> float | None:
        """A phase begins: take in the iteration that is now complete, and return the estimate."""
        if self._last_end is not None:
            self._observe(time - self._last_end + self._last_io)
        return self.w_iter_

    def ended(self, time: float, io: float) -> None:
        """A phase of `io` isolated seconds has ended."""
        self._last_end = time
        self._last_io = io

    def _observe(self, iteration: float) -> None:
        if iteration <= 0:
            return
        self.observations_ += 1
        if self.w_iter_ is None:
            self.w_iter_ = iteration
        else:
            self.w_iter_ += max(1 / self.observations_, self.gain) * (iteration - self.w_iter_)
