"""How much the policies know of the jobs in a simulation."""

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """Where estimates come from: w_iter, the lengths of phases, the work left, volumes.

    `exact`: the truth. `noisy`: the truth times 10^x with x normal of standard deviation `decades`,
    drawn once per job of a workload, the same x for all its estimates: 0.5 is wrong by a factor of
    three, about half a set of set-10. `learned`: the live estimators run on what they can observe
    while the simulation runs; a phase is expected to be as long as the job's earlier ones, and the
    work of a job is not known. What a controller measures (what a job has done, its age) is always
    exact.
    """

    kind: Literal["exact", "noisy", "learned"] = "exact"
    decades: float = 0.25
    seed: int = 0

    @classmethod
    def parse(cls, text: str, *, seed: int = 0) -> "Knowledge":
        """Read `exact`, `learned`, `noisy` or `noisy:DECADES`."""
        match = re.fullmatch(r"(exact|learned|noisy)(?::([0-9.eE+-]+))?", text)
        if match is None or (match[2] and match[1] != "noisy"):
            raise InputError(
                f"knowledge {text!r} is not one of exact, learned, noisy, noisy:DECADES (noisy:0.5)"
            )
        try:
            decades = float(match[2]) if match[2] else 0.25
        except ValueError:
            decades = -1.0
        if not 0 <= decades <= 10:
            raise InputError(f"knowledge {text!r}: decades must be between 0 and 10")
        kind: Literal["exact", "noisy", "learned"] = match[1]  # type: ignore[assignment]
        return cls(kind=kind, decades=decades, seed=seed)

    def factors(self, jobs: int, workload: bytes) -> NDArray[np.float64]:
        """Return by how much noisy estimates of each job are off, by seed and workload."""
        seeds = [self.seed, int.from_bytes(workload, "little")]
        error = np.random.default_rng(seeds).normal(0, self.decades, jobs)
        factors: NDArray[np.float64] = 10.0**error
        return factors
