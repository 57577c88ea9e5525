"""One workload simulated under several sharing policies, and how their metrics compare."""

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from penstock import registry
from penstock.campaign.executors.dispatch import Piece, complete, result
from penstock.campaign.executors.local import LocalPool
from penstock.campaign.policy_file import PolicyFile, policy_errors
from penstock.config import Loaded
from penstock.errors import InputError
from penstock.model import Action, Event, Site, View
from penstock.policies.base import Sharing
from penstock.sim import engine, metrics
from penstock.sim.as_live import AsLive
from penstock.sim.knowledge import Knowledge
from penstock.sim.run import Run
from penstock.sim.workload import Floats, Workload

HIGHER_IS_BETTER: Mapping[str, bool] = {
    "utilization": True,
    "max_stretch": False,
    "io_slowdown": False,
    "min_yield": True,
    "efficiency": True,
    "makespan": False,
}
PROCESSES_PAY = 400_000
"""Total iterations, over all simulations, above which worker processes are faster than threads."""

AS_LIVE_COSTS = 30
"""How many times longer an iteration takes in the reference simulator than a policy in Python."""


class Arbitrator(Protocol):
    """Gives jobs resources: an Arbiter, or one in the circumstances of a record."""

    def handle(self, event: Event, view: View) -> Sequence[Action]:
        """Return the assignments that follow from an event."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """The result of one policy on one workload; `finish` is when each job ended."""

    metrics: metrics.Metrics
    finish: Floats
    run: Run | None = None
    """The whole run with its timeline, if the task has timelines."""

    def figures(self) -> dict[str, Any]:
        """Return the metrics by name."""
        return {name: getattr(self.metrics, name) for name in metrics.Metrics.__dataclass_fields__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What all simulations of a comparison have in common.

    `files` maps a policy's name to the user's file it comes from, for workers on other hosts.
    """

    site: Site
    knowledge: Knowledge
    window: tuple[float, float] | None
    arbiter: Callable[[], Arbitrator | None]
    options: Mapping[str, Mapping[str, Any]]
    timeline: bool = False
    as_live: AsLive | None = None
    files: Mapping[str, PolicyFile] = field(default_factory=dict)
    by_elapsed_time: bool = False
    """A phase that the window cuts counts by its time, as in a record, not by what it moved."""

    def measure(self, workload: Workload, policy: str) -> Outcome:
        """Simulate the workload under a policy."""
        # Policies travel by name: a class from a user's file cannot be pickled.
        for file in self.files.values():
            file.check()
        name = self.files[policy].name if policy in self.files else policy
        sharing = registry.sharing(name, self.options.get(policy))
        arbiter = self.arbiter()
        with policy_errors(policy):
            simulate = engine.simulate if self.as_live is None else self.as_live.simulate
            run = simulate(
                workload,
                sharing,
                site=self.site,
                knowledge=self.knowledge,
                arbitrate=None if arbiter is None else arbiter.handle,
                marks=self.window or (),
                timeline=self.timeline,
            )
        measured = run
        if self.by_elapsed_time and self.window is not None:
            measured = replace(run, moved=None)
        return Outcome(
            metrics=metrics.measure(measured, self.window),
            finish=run.finish,
            run=run if self.timeline else None,
        )

    def figures(self, workload: Workload, policy: str) -> dict[str, Any]:
        """Return the metrics of a policy on a workload."""
        return self.measure(workload, policy).figures()

    def missing(self, workload: Workload, policies: Iterable[str]) -> dict[str, str]:
        """Return the policies that need what this workload lacks, each with the reason."""
        return missing_needs(workload, self._loaded(policies))

    def light(self, workload: Workload, policies: Sequence[str], workers: int) -> bool:
        """Return True if threads are as fast as processes."""
        return threads_suffice(workload, self._loaded(policies), self, workers)

    def _loaded(self, policies: Iterable[str]) -> dict[str, Sharing]:
        return {name: registry.sharing(name, self.options.get(name)) for name in policies}


def select(loaded: Loaded, names: str | None) -> dict[str, Sharing]:
    """Return the policies to compare: those in `names`, or all that need no options."""
    configured = loaded.config.sharing
    table = registry.table("sharing")
    selection = sorted(table) if names is None else [name.strip() for name in names.split(",")]
    if names is not None and len(set(selection)) < len(selection):
        raise InputError(f"--policies {names!r} names a policy twice; name each once")
    policies = {}
    for name in selection:
        options = configured.options if name == configured.policy else {}
        defaults = registry.options(registry.load("sharing", name)).values()
        if names is None and not options and inspect.Parameter.empty in defaults:
            continue
        policies[name] = registry.sharing(name, options)
    return policies


def missing_needs(workload: Workload, policies: Mapping[str, Sharing]) -> dict[str, str]:
    """Return the policies that need what this workload lacks, each with the reason."""
    hinted = workload.profile is not None or all("profile" in job.hints for job in workload.jobs())
    reason = "it needs the hint 'profile' of every job, which the file does not have"
    return {
        name: reason
        for name, sharing in policies.items()
        if "profile" in sharing.needs and not hinted
    }


def simulate(
    workload: Workload,
    policies: Mapping[str, Sharing],
    task: Task,
    advance: Callable[[], None],
) -> dict[str, Outcome]:
    """Simulate the workload under each policy, on all cores; call `advance` after each."""
    outcomes: dict[Hashable, Outcome] = {}

    def keep(policy: Hashable, future: "Future[Outcome]") -> None:
        outcomes[policy] = result(future)
        advance()

    with LocalPool() as place:
        executor = place.executor(light=threads_suffice(workload, policies, task, place.room()))
        pieces = (
            Piece(key=policy, executor=executor, call=(task.measure, workload, policy))
            for policy in policies
        )
        complete(pieces, keep, patience=0)
    return {policy: outcomes[policy] for policy in policies}


def threads_suffice(
    workload: Workload, policies: Mapping[str, Sharing], task: Task, workers: int
) -> bool:
    """Return True if the engine runs without calling Python, or there is little work."""
    calls_python = (
        task.knowledge.kind == "learned"
        or task.as_live is not None
        or task.arbiter() is not None
        or any(engine.calls_python(policy) for policy in policies.values())
    )
    events_in_python = AS_LIVE_COSTS if task.as_live is not None else 1
    large = workload.iterations * len(policies) * events_in_python > PROCESSES_PAY
    return not (calls_python and large and min(workers, len(policies)) > 1)


def rank(policies: Mapping[str, dict[str, Any]], base: str) -> dict[str, dict[str, Any]]:
    """Sort policies by utilization, and add to each its gain over `base` in every metric."""
    reference = policies.get(base)
    for figures in policies.values():
        figures["gain"] = reference and {
            metric: _gain(metric, figures[metric], reference[metric]) for metric in HIGHER_IS_BETTER
        }
    return dict(sorted(policies.items(), key=lambda item: -item[1]["utilization"]))


def _gain(metric: str, value: float, base: float) -> float:
    """Return the relative improvement over the base: 0.1 is ten percent better."""
    if not base:
        return float("nan")
    return value / base - 1 if HIGHER_IS_BETTER[metric] else 1 - value / base
