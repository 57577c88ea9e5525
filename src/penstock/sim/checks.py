"""Validation of a workload before the engine reads its arrays; reports the first fault."""

from graphlib import CycleError, TopologicalSorter

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.model import Site
from penstock.printable import is_printable
from penstock.sim.workload import Floats, Workload

LONGEST = 1e12
"""Limit of total work and release in seconds: above it a double cannot resolve milliseconds."""
SHORTEST = 1e-9
"""Minimum mean length of an iteration, and minimum cap: below it rates overflow."""


def check(workload: Workload, site: Site | None = None) -> None:
    """Raise InputError unless the site can run all jobs of the workload.

    A valid workload becomes read-only, and is not checked again for a site of that size.
    """
    site = site or Site()
    size = (site.resources, site.nodes)
    if size in workload.checked_for:
        return
    if len(workload) == 0:
        raise InputError("the workload has no jobs; give at least one")
    _shapes(workload)
    _names(workload)
    _caps(workload)
    _durations(workload)
    _resources(workload, site.resources)
    _nodes(workload, site.nodes)
    _barriers(workload)
    for value in vars(workload).values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    workload.checked_for.add(size)


def _first(faulty: NDArray[np.bool_]) -> int | None:
    """Return the index of the first True, or None."""
    at = int(faulty.argmax()) if len(faulty) else 0
    return at if len(faulty) and faulty[at] else None


def _shapes(w: Workload) -> None:
    n = len(w)
    for name in ("nodes", "max_share", "barrier", "after", "profile", "ids", "curves", "details"):
        column = getattr(w, name)
        if column is not None and len(column) != n:
            raise InputError(f"{name} has {len(column)} entries for {n} jobs; give one per job")
    for name, offsets, rows in (
        ("offsets", w.offsets, {len(w.compute), len(w.io)}),
        ("resource_offsets", w.resource_offsets, {len(w.resources)}),
    ):
        complete = len(offsets) == n + 1 and offsets[0] == 0 and {int(offsets[-1])} == rows
        if not complete or (np.diff(offsets) < 0).any():
            raise InputError(
                f"{name} must rise from 0 to the number of rows, with one entry more than jobs"
            )


def _names(w: Workload) -> None:
    if w.ids is None:
        return
    for j, name in enumerate(w.ids):
        if not is_printable(name):  # so no table, page or figure has to
            raise InputError(f"jobs[{j}].id {name!r} has control characters; give it another name")
    if len(set(w.ids)) == len(w.ids):
        return
    earlier: set[str] = set()
    for j, name in enumerate(w.ids):
        if name in earlier:
            raise InputError(f"jobs[{j}].id {name!r} is used twice; give each job its own")
        earlier.add(name)


def _durations(w: Workload) -> None:
    j = _first(np.diff(w.offsets) == 0)
    if j is not None:
        raise InputError(f"job {w.id(j)!r} has no phases; give it at least one [compute, io]")
    for name in ("compute", "io"):
        values: Floats = getattr(w, name)
        at = _first(~((values >= 0) & (values < np.inf)))
        if at is not None:
            j = int(np.searchsorted(w.offsets, at, side="right")) - 1
            raise InputError(
                f"job {w.id(j)!r}, phases[{at - w.offsets[j]}], {name} is {values[at]:g}; "
                "give a finite number of seconds, zero or more"
            )
    j = _first(~((w.release >= 0) & (w.release < np.inf)))
    if j is not None:
        raise InputError(
            f"job {w.id(j)!r}, release is {w.release[j]:g}; give a finite number, zero or more"
        )
    with np.errstate(over="ignore"):
        total = float(w.work.sum() + w.release.max())
    if not total < LONGEST:
        raise InputError(
            f"the phases and releases add up to {total:g} s; the limit is {LONGEST:g} s"
        )
    j = _first(w.work <= 0)
    if j is not None:
        raise InputError(f"job {w.id(j)!r} does nothing: all its phases are [0, 0]; drop it")
    j = _first(w.w_iter < SHORTEST)
    if j is not None:
        raise InputError(
            f"job {w.id(j)!r} has iterations of {w.w_iter[j]:g} s on average; "
            f"give at least {SHORTEST:g} s"
        )


def _caps(w: Workload) -> None:
    j = _first(~((w.max_share >= SHORTEST) & (w.max_share <= 1)))
    if j is not None:
        raise InputError(
            f"job {w.id(j)!r}, max_share is {w.max_share[j]:g}; give a part of one resource, "
            f"{SHORTEST:g} to 1"
        )


def _resources(w: Workload, resources: int) -> None:
    widths = np.diff(w.resource_offsets)
    j = _first(widths == 0)
    if j is not None:
        raise InputError(f"job {w.id(j)!r} has no resources; give it at least one")
    owner = np.repeat(np.arange(len(w), dtype=np.int64), widths)
    at = _first((w.resources < 0) | (w.resources >= resources))
    if at is not None:
        raise InputError(
            f"job {w.id(int(owner[at]))!r} uses resource {w.resources[at]}, "
            f"but the site has 0 to {resources - 1}; set site.resources"
        )
    pairs = np.sort(owner * resources + w.resources)
    at = _first(np.diff(pairs) == 0)
    if at is not None:
        name = w.id(int(pairs[at] // resources))
        raise InputError(f"job {name!r} names a resource twice; name each once")


def _nodes(w: Workload, nodes: int) -> None:
    j = _first(w.nodes < 1)
    if j is not None:
        raise InputError(f"job {w.id(j)!r} has nodes = {w.nodes[j]}; give at least 1")
    j = _first(w.nodes > nodes) if nodes else None
    if j is not None:
        raise InputError(
            f"job {w.id(j)!r} needs {w.nodes[j]} nodes, but the site has {nodes}; "
            "raise site.nodes or drop the job"
        )


def _barriers(w: Workload) -> None:
    j = _first((w.barrier >= len(w)) | (w.after >= len(w)))
    if j is not None:
        raise InputError(
            f"job {w.id(j)!r} has a barrier number beyond the number of jobs; count from 0"
        )
    waits = (w.after >= 0) & (w.barrier >= 0)
    edges = np.unique(np.stack((w.barrier[waits], w.after[waits])), axis=1).T.tolist()
    before: dict[int, set[int]] = {}
    for barrier, after in edges:
        before.setdefault(barrier, set()).add(after)
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        raise InputError("packs wait for each other in a circle; no job could start") from error
