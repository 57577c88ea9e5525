"""What really happens: jobs with all their phases, as arrays that the engine reads in place.

Policies never see a Workload. They see the Jobs that `Workload.jobs` makes of it, with as much
knowledge as asked for.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock.errors import InputError
from penstock.model import Job
from penstock.sim.knowledge import Knowledge

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Ints = NDArray[np.int32]


class Workload:
    """Jobs and their phases: job j owns the iterations [offsets[j], offsets[j + 1]).

    Iteration i is `compute[i]` seconds of computation and then an I/O phase that needs `io[i]`
    isolated seconds on each of the job's resources (CSR: `resource_offsets`, `resources`). A job
    with `barrier[j]` >= 0 counts for that barrier; one with `after[j]` >= 0 starts only once all
    jobs of that barrier have ended. `profile` is the mean characteristic time of the class that a
    generator drew a job from; `details` a job's user, executable, processes and hints, where the
    source had them.
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
        details: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        def array(values: ArrayLike | None, dtype: type, default: Any = None) -> NDArray[Any]:
            return np.ascontiguousarray(default if values is None else values, dtype=dtype)

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
        self.details = details

    def __len__(self) -> int:
        return len(self.release)

    @property
    def iterations(self) -> int:
        """How many iterations all jobs have together."""
        return len(self.io)

    def id(self, j: int) -> str:
        """Return the name of job j."""
        return str(j) if self.ids is None else self.ids[j]

    @cached_property
    def work(self) -> Floats:
        """A job's compute plus isolated I/O, in seconds."""
        return self.total(self.compute) + self.total(self.io)

    @cached_property
    def w_iter(self) -> Floats:
        """A job's characteristic time: mean compute plus isolated I/O of an iteration."""
        return self.work / np.diff(self.offsets)

    @cached_property
    def alpha_io(self) -> Floats:
        """The part of a job's time that is I/O when it runs alone."""
        return self.total(self.io) / self.work

    @property
    def omega(self) -> float:
        """The I/O stress of the site: the sum of alpha_io."""
        return float(self.alpha_io.sum())

    def total(self, values: Floats) -> Floats:
        """Return the sum of an iteration-wise array a job."""
        totals: Floats = np.add.reduceat(values, self.offsets[:-1])
        return totals

    def jobs(self, knowledge: Knowledge | None = None) -> Iterator[Job]:
        """Yield the jobs as policies may know them."""
        n = len(self)
        estimates = (knowledge or Knowledge()).estimates(self.w_iter)
        w_iter = [None] * n if estimates is None else estimates.tolist()
        profile = [None] * n if self.profile is None else self.profile.tolist()
        columns = zip(self.nodes.tolist(), self.max_share.tolist(), w_iter, profile, strict=True)
        for j, (nodes, max_share, estimate, mean) in enumerate(columns):
            known = dict(self.details[j]) if self.details is not None else {}
            hints = {} if mean is None else {"profile": mean}
            yield Job(
                id=self.id(j),
                serial=j,
                nodes=nodes,
                w_iter=estimate,
                max_share=max_share,
                hints=hints | known.pop("hints", {}),
                **known,
            )

    def resources_of(self, j: int) -> tuple[int, ...]:
        """Return the resources that job j starts with."""
        first, stop = self.resource_offsets[j : j + 2]
        return tuple(int(r) for r in self.resources[first:stop])

    def check(self, *, resources: int = 1, nodes: int = 0) -> None:
        """Raise InputError unless a site with so many resources and nodes can run all jobs."""
        if len(self) == 0:
            raise InputError("the workload has no jobs; give at least one")
        self._check_names()
        self._check_numbers()
        self._check_places(resources, nodes)
        self._check_barriers()

    def _check_names(self) -> None:
        if self.ids is None or len(set(self.ids)) == len(self.ids):
            return
        seen: set[str] = set()
        for j, name in enumerate(self.ids):
            if name in seen:
                raise InputError(f"jobs[{j}].id {name!r} is used twice; give each job its own")
            seen.add(name)

    def _check_numbers(self) -> None:
        empty = np.flatnonzero(np.diff(self.offsets) <= 0)
        if len(empty):
            raise InputError(
                f"job {self.id(empty[0])!r} has no phases; give it at least one [compute, io]"
            )
        for name in ("compute", "io"):
            values: Floats = getattr(self, name)
            bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
            if len(bad):
                j = int(np.searchsorted(self.offsets, bad[0], side="right")) - 1
                k = int(bad[0] - self.offsets[j])
                raise InputError(
                    f"job {self.id(j)!r}, phases[{k}], {name} is {values[bad[0]]:g}; "
                    "give a finite number of seconds, zero or more"
                )
        for name, low, high in (("release", 0.0, math.inf), ("max_share", 0.0, 1.0)):
            values = getattr(self, name)
            above = values > low if name == "max_share" else values >= low
            bad = np.flatnonzero(~(np.isfinite(values) & above & (values <= high)))
            if len(bad):
                wanted = "above 0, at most 1" if name == "max_share" else "finite, zero or more"
                raise InputError(
                    f"job {self.id(bad[0])!r}, {name} is {values[bad[0]]:g}; it must be {wanted}"
                )
        idle = np.flatnonzero(self.work <= 0)
        if len(idle):
            raise InputError(f"job {self.id(idle[0])!r} does nothing: all its phases are [0, 0]")

    def _check_places(self, resources: int, nodes: int) -> None:
        widths = np.diff(self.resource_offsets)
        narrow = np.flatnonzero(widths < 1)
        if len(narrow):
            raise InputError(f"job {self.id(narrow[0])!r} has no resources; give it at least one")
        owner = np.repeat(np.arange(len(self)), widths)
        wrong = np.flatnonzero((self.resources < 0) | (self.resources >= resources))
        if len(wrong):
            raise InputError(
                f"job {self.id(owner[wrong[0]])!r} uses resource {self.resources[wrong[0]]}, "
                f"but the site has 0 to {resources - 1}; set site.resources"
            )
        pairs = owner.astype(np.int64) * resources + self.resources
        if len(np.unique(pairs)) != len(pairs):
            ordered = np.sort(pairs)
            twice = int(ordered[:-1][np.diff(ordered) == 0][0]) // resources
            raise InputError(f"job {self.id(twice)!r} names a resource twice; name each once")
        few = np.flatnonzero(self.nodes < 1)
        if len(few):
            raise InputError(f"job {self.id(few[0])!r} has nodes = {self.nodes[few[0]]}; give >= 1")
        large = np.flatnonzero(self.nodes > nodes)
        if nodes and len(large):
            raise InputError(
                f"job {self.id(large[0])!r} needs {self.nodes[large[0]]} nodes, "
                f"but the site has {nodes}; raise site.nodes or drop the job"
            )

    def _check_barriers(self) -> None:
        members: dict[int, set[int]] = {}
        for barrier, after in zip(self.barrier.tolist(), self.after.tolist(), strict=True):
            if after >= 0:
                members.setdefault(barrier, set()).add(after)
        # A barrier that (through others) waits for itself would never open.
        open_, done = set[int](), set[int]()
        for first in members:
            stack = [(first, False)]
            while stack:
                barrier, left = stack.pop()
                if left:
                    open_.discard(barrier)
                    done.add(barrier)
                    continue
                if barrier in done or barrier < 0:
                    continue
                if barrier in open_:
                    raise InputError("barriers wait for each other in a circle; no job could start")
                open_.add(barrier)
                stack.append((barrier, True))
                stack.extend((b, False) for b in members.get(barrier, ()))
