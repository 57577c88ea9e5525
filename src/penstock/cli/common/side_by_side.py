"""Simulations of one workload under several policies, and their metrics side by side."""

import inspect
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from penstock import registry
from penstock.campaign.executors.dispatch import Piece, complete, result
from penstock.campaign.executors.local import Local
from penstock.campaign.policy_file import PolicyFile
from penstock.cli.common import options
from penstock.cli.common.output import emit_table
from penstock.config import Loaded
from penstock.core.arbiter import Arbiter
from penstock.errors import InputError
from penstock.model import Site
from penstock.policies.base import Sharing
from penstock.progress import Progress
from penstock.sim import engine, metrics
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
"""Iterations, over all simulations, from which processes of their own are worth their start."""

SHOWN: Mapping[str, str] = {
    "utilization": "utilization",
    "max_stretch": "max\nstretch",
    "io_slowdown": "IO\nslowdown",
    "efficiency": "efficiency",
    "makespan": "makespan",
}
"""The columns for people, which fit a terminal; the yield is the stretch upside down."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What a policy made of a workload; `finish` is when each job ended."""

    metrics: metrics.Metrics
    finish: Floats
    run: Run | None = None  # where it was asked for, with its timeline

    def figures(self) -> dict[str, Any]:
        """Return the metrics by name."""
        return {name: getattr(self.metrics, name) for name in metrics.Metrics.__dataclass_fields__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """All that the simulations have in common.

    `files` are where policies of the user's own are, for workers that are elsewhere.
    """

    site: Site
    knowledge: Knowledge
    window: tuple[float, float] | None
    arbiter: Callable[[], Arbiter | None]
    options: Mapping[str, Mapping[str, Any]]
    timeline: bool = False
    files: Mapping[str, PolicyFile] = field(default_factory=dict)

    def measure(self, workload: Workload, policy: str) -> Outcome:
        """Simulate the workload under a policy."""
        # By name: a policy from a file cannot travel to another process, its name can.
        for file in self.files.values():
            file.check()
        called = self.files[policy].name if policy in self.files else policy
        sharing = registry.sharing(called, self.options.get(policy))
        arbiter = self.arbiter()
        with options.running(policy):
            run = engine.simulate(
                workload,
                sharing,
                site=self.site,
                knowledge=self.knowledge,
                arbitrate=None if arbiter is None else arbiter.handle,
                timeline=self.timeline,
            )
        return Outcome(
            metrics=metrics.measure(run, self.window),
            finish=run.finish,
            run=run if self.timeline else None,
        )


def choose(loaded: Loaded, names: str | None) -> dict[str, Sharing]:
    """Return the policies to compare: those named, or all that need no options."""
    configured = loaded.config.sharing
    table = registry.table("sharing")
    wanted = sorted(table) if names is None else [name.strip() for name in names.split(",")]
    if names is not None and len(set(wanted)) < len(wanted):
        raise InputError(f"--policies {names!r} names a policy twice; name each once")
    chosen = {}
    for name in wanted:
        given = configured.options if name == configured.policy else {}
        defaults = registry.options(registry.load("sharing", name)).values()
        if names is None and not given and inspect.Parameter.empty in defaults:
            continue
        chosen[name] = registry.sharing(name, given)
    return chosen


def unfed(workload: Workload, chosen: Mapping[str, Sharing]) -> dict[str, str]:
    """Return the policies that want to know what this workload does not say, and what that is."""
    hinted = workload.profile is not None or all("profile" in job.hints for job in workload.jobs())
    reason = "it needs the hint 'profile' of every job, which the file does not have"
    return {p: reason for p, sharing in chosen.items() if "profile" in sharing.needs and not hinted}


def simulate(
    workload: Workload, policies: Mapping[str, Sharing], task: Task, shown: Progress
) -> dict[str, Outcome]:
    """Return what each policy makes of the workload, worked out on all cores."""
    outcomes: dict[Hashable, Outcome] = {}

    def keep(policy: Hashable, future: "Future[Outcome]") -> None:
        outcomes[policy] = result(future)
        shown.advance()

    with Local() as place:
        executor = place.executor(light=light(workload, policies, task, place.room()))
        pieces = (
            Piece(key=policy, executor=executor, call=(task.measure, workload, policy))
            for policy in policies
        )
        complete(pieces, keep, patience=0)
    return {policy: outcomes[policy] for policy in policies}


def light(workload: Workload, policies: Mapping[str, Sharing], task: Task, workers: int) -> bool:
    """Say whether threads will do: the engine works without Python, or there is little to do."""
    asks = (
        task.knowledge.kind == "learned"
        or task.arbiter() is not None
        or any(p.order is None for p in policies.values())
    )
    large = workload.iterations * len(policies) > PROCESSES_PAY
    return not (asks and large and min(workers, len(policies)) > 1)


def ranked(policies: Mapping[str, dict[str, Any]], base: str) -> dict[str, dict[str, Any]]:
    """Return the policies by utilization, each with its gain over `base` in every metric."""
    over = policies.get(base)
    for figures in policies.values():
        figures["gain"] = over and {k: _gain(k, figures[k], over[k]) for k in HIGHER_IS_BETTER}
    return dict(sorted(policies.items(), key=lambda item: -item[1]["utilization"]))


def _gain(metric: str, value: float, base: float) -> float:
    """Return by which part a value is better than the base: 0.1 is ten percent better."""
    if not base:
        return float("nan")
    return value / base - 1 if HIGHER_IS_BETTER[metric] else 1 - value / base


def show(policies: Mapping[str, Mapping[str, Any]], title: str, starred: Iterable[str]) -> None:
    """Print ranked policies as a table; the best of those in `starred` get a star each column."""
    starred = set(starred)
    contest = [figures for name, figures in policies.items() if name in starred]
    best = {
        metric: (max if HIGHER_IS_BETTER[metric] else min)(f[metric] for f in contest)
        for metric in SHOWN
    }
    rows: list[Sequence[str]] = []
    for name, figures in policies.items():
        stars = name in starred and len(contest) > 1
        cells = [_cell(figures[m], star=stars and figures[m] == best[m]) for m in SHOWN]
        gain = figures["gain"] and f"{100 * figures['gain']['utilization']:+.2f}%"
        rows.append((name, cells[0], gain or "-", *cells[1:]))
    utilization, *others = SHOWN.values()
    emit_table(("policy", utilization, "gain", *others), rows, title=title)


def _cell(value: float, *, star: bool) -> str:
    if math.isnan(value):
        return "- "
    number = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4f}"
    return f"{number}{'*' if star else ' '}"
