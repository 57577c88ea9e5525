"""The truth of a simulation: jobs with all their phases, as arrays that the engine reads in place.

Policies never see a Workload. They see the Jobs that `Workload.jobs` makes of it, which know as
much as the `Knowledge` allows.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock.errors import InputError
from penstock.model import Curve, Job, Site
from penstock.sim.knowledge import Knowledge

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
ARRAYS = (
    "compute",
    "io",
    "offsets",
    "release",
    "nodes",
    "max_share",
    "resource_offsets",
    "resources",
    "barrier",
    "after",
    "profile",
)
"""The arrays that a run depends on."""


PARTS = (1e-5, 1.1)
"""The part of its resources that a curve can leave a job: MB/s and B/s are farther apart, and
measured bandwidths are a little above the nominal ones at most."""
MOST_SEED = 2**63 - 1
"""The largest seed of a generator: those of the following draws are still numbers that JSON has."""


class Generator(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What drew a workload: a generator by its name, its options and its seed."""

    preset: str
    seed: Annotated[int, msgspec.Meta(ge=0, le=MOST_SEED)]
    options: dict[str, int | float | str | tuple[float, ...] | None] = {}


class Workload:
    """Jobs and their phases: job j owns the iterations [offsets[j], offsets[j + 1]).

    Iteration i is `compute[i]` seconds of computation and then an I/O phase that needs `io[i]`
    seconds of the whole of each of the job's resources (CSR: `resource_offsets`, `resources`). A
    job that can use no more than `max_share[j]` of a resource needs `io[i] / max_share[j]` alone.
    A job with `barrier[j]` >= 0 counts for that barrier; a job with `after[j]` >= 0 starts only
    once all jobs of that barrier have ended. `profile` is the mean characteristic time of the class
    that a generator drew a job from. `curves` is each job's bandwidth by number of resources, which
    gives the length of its I/O on another number of resources. `details` has user, executable,
    processes and hints. The last three are None if the source has none. `generator` is what drew
    the jobs; None: they were recorded, or written by people.

    `penstock.sim.checks.check` makes the arrays of a valid workload read-only.
    """

    def __init__(
        self,
        *,
        compute: ArrayLike,
        io: ArrayLike,
        offsets: ArrayLike,
        release: ArrayLike,
        ids: Sequence[str] | None = None,
        nodes: ArrayLike | None = None,
        max_share: ArrayLike | None = None,
        resource_offsets: ArrayLike | None = None,
        resources: ArrayLike | None = None,
        barrier: ArrayLike | None = None,
        after: ArrayLike | None = None,
        profile: ArrayLike | None = None,
        horizon: float | None = None,
        curves: Sequence[Curve | None] | None = None,
        details: Sequence[Mapping[str, Any]] | None = None,
        generator: Generator | None = None,
    ) -> None:
        def array(values: ArrayLike | None, dtype: type, default: Any = None) -> NDArray[Any]:
            # A view: the caller's own array stays writable.
            return np.ascontiguousarray(default if values is None else values, dtype=dtype).view()

        self.compute: Floats = array(compute, np.float64)
        self.io: Floats = array(io, np.float64)
        self.offsets: Longs = array(offsets, np.int64)
        self.release: Floats = array(release, np.float64)
        n = len(self.release)
        self.nodes: Longs = array(nodes, np.int64, np.ones(n))
        self.max_share: Floats = array(max_share, np.float64, np.ones(n))
        self.resource_offsets: Longs = array(resource_offsets, np.int64, np.arange(n + 1))
        self.resources: Ints = array(resources, np.int32, np.zeros(n))
        self.barrier: Ints = array(barrier, np.int32, np.full(n, -1))
        self.after: Ints = array(after, np.int32, np.full(n, -1))
        self.profile: Floats | None = None if profile is None else array(profile, np.float64)
        self.ids = ids
        self.horizon = horizon
        self.curves = curves
        self.details = details
        self.generator = generator
        self.checked_for: set[tuple[int, int]] = set()
        """Numbers of resources and nodes of the sites that this workload is valid for."""

    def __len__(self) -> int:
        return len(self.release)

    @property
    def iterations(self) -> int:
        """The number of iterations of all jobs."""
        return len(self.io)

    def id(self, j: int) -> str:
        """Return the name of job j."""
        return str(j) if self.ids is None else self.ids[j]

    @cached_property
    def isolated_io(self) -> Floats:
        """The length of every I/O phase when its job runs alone, at its own bandwidth."""
        if np.all(self.max_share == 1):
            return self.io
        return self.io / np.repeat(self.max_share, np.diff(self.offsets))

    @cached_property
    def work(self) -> Floats:
        """A job's compute plus isolated I/O, in seconds."""
        return self.total(self.compute) + self.total(self.isolated_io)

    @cached_property
    def w_iter(self) -> Floats:
        """A job's characteristic time: mean compute plus isolated I/O of an iteration."""
        return self.work / np.diff(self.offsets)

    @cached_property
    def alpha_io(self) -> Floats:
        """The part of a job's time that is I/O when it runs alone."""
        return self.total(self.isolated_io) / self.work

    @property
    def omega(self) -> float:
        """The I/O stress of the site: the sum of alpha_io."""
        return float(self.alpha_io.sum())

    @property
    def long_run_bound(self) -> float:
        """The bound of utilization in paper io-sets, of jobs that all run all the time."""
        return 1 - self.omega / len(self)

    @property
    def in_pack(self) -> NDArray[np.bool_]:
        """Whether each job is in a pack, or waits for one."""
        packed: NDArray[np.bool_] = (self.barrier >= 0) | (self.after >= 0)
        return packed

    @property
    def steady_part(self) -> tuple[float, ...]:
        """The paper's window, [6000, 14000] of a horizon of 20,000 s; empty without a horizon."""
        return () if self.horizon is None else (0.3 * self.horizon, 0.7 * self.horizon)

    def total(self, values: Floats) -> Floats:
        """Sum an array with one entry per iteration over each job."""
        totals: Floats = np.add.reduceat(values, self.offsets[:-1])
        return totals

    def fingerprint(self) -> bytes:
        """Return a digest of the jobs, whatever they are called; the same in every process."""
        digest = hashlib.sha256(repr((self.horizon, list(self.curves or ()))).encode())
        for name in ARRAYS:
            array = getattr(self, name)
            digest.update(f"{name} {None if array is None else array.shape}".encode())
            if array is not None:
                digest.update(array.tobytes())
        return digest.digest()

    def estimate_factors(self, knowledge: Knowledge) -> Floats:
        """Return by how much the estimates of each job are off."""
        if knowledge.kind != "noisy":
            return np.ones(len(self))
        # By content, so that workloads compared with each other have independent errors.
        return knowledge.factors(len(self), self.fingerprint())

    def jobs(self, knowledge: Knowledge | None = None) -> Iterator[Job]:
        """Yield the jobs as policies may know them."""
        n = len(self)
        knowledge = knowledge or Knowledge()
        factors = self.estimate_factors(knowledge)
        learned = knowledge.kind == "learned"
        w_iter = [None] * n if learned else (self.w_iter * factors).tolist()
        profile = [None] * n if self.profile is None else self.profile.tolist()
        columns = zip(self.nodes.tolist(), self.max_share.tolist(), w_iter, profile, strict=True)
        for j, (nodes, max_share, estimate, mean) in enumerate(columns):
            details = dict(self.details[j]) if self.details is not None else {}
            hints = {} if mean is None else {"profile": mean}
            yield Job(
                id=self.id(j),
                serial=j,
                nodes=nodes,
                w_iter=estimate,
                max_share=max_share,
                hints=hints | details.pop("hints", {}),
                **details,
                **self._demand(j, float(factors[j])),
            )

    def _demand(self, j: int, factor: float) -> dict[str, Any]:
        """Return job j's curve, estimated volume and compute time, if it has a curve."""
        curve = None if self.curves is None else self.curves[j]
        if curve is None:
            return {}
        rows = slice(*self.offsets[j : j + 2])
        demand = {"curve": curve, "compute": float(self.compute[rows].sum())}
        if len(self.resources_of(j)) in curve:
            volume = float(self.io[rows].sum()) * self._bandwidth(j, curve)
            demand["volume"] = volume * factor
        return demand

    def _bandwidth(self, j: int, curve: Curve, count: int | None = None) -> float:
        """Return job j's bandwidth on `count` resources, or on those it starts with."""
        try:
            return curve.bandwidth(len(self.resources_of(j)) if count is None else count)
        except InputError as error:
            raise InputError(f"job {self.id(j)!r}: {error}") from error

    def io_scale(self, j: int, count: int) -> float:
        """Return the factor from `io` to the length of job j's I/O on `count` resources."""
        curve = None if self.curves is None else self.curves[j]
        if curve is None:
            return 1.0
        return self._bandwidth(j, curve) / self._bandwidth(j, curve, count)

    def part(self, j: int, count: int, site: Site) -> float:
        """Return the part of each of `count` resources that job j can use when alone."""
        curve = None if self.curves is None else self.curves[j]
        if not site.work_conserving or curve is None or not count:
            return 1.0
        assert site.bandwidth is not None
        bandwidth = self._bandwidth(j, curve, count)
        part = bandwidth / (count * site.bandwidth)
        if not PARTS[0] <= part <= PARTS[1]:
            raise InputError(
                f"job {self.id(j)!r}: b({count}) is {bandwidth:g}, and site.bandwidth, what one "
                f"resource carries, {site.bandwidth:g}; with site.work-conserving give both in "
                "the same unit"
            )
        return min(part, 1.0)

    def parts(self, site: Site) -> Floats:
        """Return that part for each job, on the resources that it starts with."""
        if not site.work_conserving:
            return np.ones(len(self))
        return np.array([self.part(j, len(self.resources_of(j)), site) for j in range(len(self))])

    def resources_of(self, j: int) -> tuple[int, ...]:
        """Return the resources that job j starts with."""
        first, stop = self.resource_offsets[j : j + 2]
        return tuple(int(r) for r in self.resources[first:stop])
