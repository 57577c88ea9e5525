"""What an allocator or a placer answers, checked: one count per job, or distinct resources.

A policy may come from a user's file, and its answer may have code of its own: it becomes plain.
"""

from collections.abc import Iterable, Mapping

from penstock.errors import InputError
from penstock.model import JobId, ResourceId, View
from penstock.policies._support.asking import ask, guard, shown
from penstock.policies.base import Allocator, Placer

Resources = tuple[ResourceId, ...]


def allocate(allocator: Allocator, view: View) -> dict[JobId, int]:
    """Return one count per job; InputError: the allocator's answer is invalid."""
    name, site = type(allocator).__name__, view.site

    def plain(answer: object) -> dict[JobId, int]:
        if not isinstance(answer, Mapping):
            raise InputError(
                f"{name} answered {shown(answer)}; allocate() must return counts by job"
            )
        _same_jobs(name, answer, view.jobs)
        for job, count in answer.items():
            if (
                not isinstance(count, int)
                or not (0 if site.direct else 1) <= count <= site.resources
            ):
                path = "" if site.direct else " and no direct access"
                raise InputError(
                    f"{name} gives job {job!r} {shown(count)} resources; "
                    f"the site has {site.resources}{path}"
                )
        return {str.__str__(job): int.__int__(count) for job, count in answer.items()}

    counts: dict[JobId, int] = ask(allocator, "allocate", view, plain=plain)
    return counts


def place(
    placer: Placer, view: View, counts: Mapping[JobId, int], staying: Mapping[JobId, Resources]
) -> dict[JobId, Resources]:
    """Return the resources of every job in `counts`; InputError: the placer's answer is invalid."""
    requested = {job: count for job, count in counts.items() if count > 0}
    name, site = type(placer).__name__, view.site
    # A job that goes direct from now on frees its resources.
    stay = {j: r for j, r in staying.items() if r and (j in requested or j not in counts)}

    def plain(answer: object) -> dict[JobId, Resources]:
        if not isinstance(answer, Mapping):
            raise InputError(
                f"{name} answered {shown(answer)}; place() must return resources by job"
            )
        _same_jobs(name, answer, requested)
        for job, resources in answer.items():
            valid = isinstance(resources, tuple | list) and all(
                isinstance(r, int) and 0 <= r < site.resources for r in resources
            )
            if not valid or not len(set(resources)) == len(resources) == requested[job]:
                raise InputError(
                    f"{name} gives job {job!r} the resources {shown(resources)}; "
                    f"it must be {requested[job]} distinct ones of 0 to {site.resources - 1}"
                )
        return {
            job: tuple(map(int.__int__, answer[job])) if job in requested else () for job in counts
        }

    places: dict[JobId, Resources] = ask(placer, "place", view, requested, stay, plain=plain)
    return places


def _same_jobs(name: str, answer: Mapping[JobId, object], jobs: Iterable[JobId]) -> None:
    expected = set(jobs)
    for job in expected:
        if job not in answer:
            raise InputError(f"{name} left out job {job!r}; it must answer for every job")
    for job in answer:
        if job not in expected:
            raise InputError(f"{name} answers for {job!r}, which is not one of the jobs to decide")


def error_text(policy: object, error: BaseException) -> str:
    """Return what a policy raised, in one line; the text of its own exceptions is its code."""
    try:
        text = guard(policy, "an exception", str, error)
    except Exception:
        text = ""
    return shown(" ".join(text.split()) or type(error).__name__)[1:-1]
