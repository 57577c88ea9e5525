"""A recorded day under other policies: how well the model fits, and who gains beyond its error.

Gains are relative to the policy that ran, simulated: then an error of the model that is the same
for both cancels out. What the policy that ran, simulated, differs from what was recorded is the
error of the model. A difference between policies that is no larger is no gain.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.sim import metrics
from penstock.sim.evaluate import policy_runs
from penstock.sim.evaluate.policy_runs import HIGHER_IS_BETTER, Outcome
from penstock.sim.evaluate.what_ran import Ran
from penstock.sim.formats.from_record import Missing, Recording
from penstock.sim.workload import Floats

MOST_JOBS = 3
"""The number of jobs named as the largest gains, and losses."""
MAIN_METRIC = "utilization"
MOST_NAMED = 3
"""The number of policies that the verdict names."""
NOTABLE = 0.001
"""A relative difference below this is no gain or loss, however small the error is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A metric of what was recorded, and of the policy that ran, simulated."""

    recorded: float
    simulated: float
    least: float = NOTABLE
    """A smaller relative difference never counts, however small the error is."""

    @property
    def error(self) -> float:
        """By which part the simulated value is above the recorded one."""
        return self.simulated / self.recorded - 1 if self.recorded else math.nan

    @property
    def own(self) -> float:
        """The error in the metric itself, or in percent if that is more."""
        return abs(self.simulated - self.recorded) * max(1.0, self.simulated / self.recorded)

    @property
    def bar(self) -> float:
        """The part by which a simulated value must differ from that of what ran to count."""
        if not self.recorded or not self.simulated:
            return math.nan
        return max(self.own / abs(self.simulated), self.least)

    @property
    def by_run_times(self) -> bool:
        """Whether the error of run times, not that of the metric, sets the bar."""
        return self.bar == self.least > NOTABLE

    def is_exceeded(self, value: float) -> bool:
        """Tell whether a simulated value differs from that of what ran by more than the error.

        By more than it in the metric itself, and by more than it in percent.
        """
        if not self.recorded:
            return False
        return abs(value - self.simulated) > max(self.own, self.least * abs(self.simulated))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChange:
    """A job's time from start to end, in seconds: recorded, under what ran, under a policy."""

    job: str
    recorded: float
    ran: float
    simulated: float

    @property
    def change(self) -> float:
        """By which part it is longer than under what ran, both simulated."""
        return self.simulated / self.ran - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyResult:
    """A simulated policy: its metrics, its gains, and the jobs that gain and lose most by it.

    All gains and changes are relative to what ran, simulated; the named jobs are those whose change
    exceeds the error of the model for that job, and the mean error of all.
    """

    figures: Mapping[str, Any]
    gain: Mapping[str, float]
    beyond_model_error: Mapping[str, bool]
    gainers: Sequence[JobChange]
    losers: Sequence[JobChange]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """The result: what ran, how well the model fits it, and the policies, best first."""

    ran: Ran
    model_check: Mapping[str, Check]
    job_error: float
    """Mean error of the jobs' run times, as a part: errors of jobs may cancel out in a metric."""
    policies: Mapping[str, PolicyResult]
    missing: Missing
    window: tuple[float, float]
    outcomes: Mapping[str, Outcome] = field(repr=False)
    simulated_only: Mapping[str, str] = field(default_factory=dict)
    """Policies that a live site refuses, each with the reason."""

    @property
    def not_judged(self) -> str | None:
        """Why gains are not judged; None if they are."""
        return str(self.missing) if self.missing.matters else None

    @property
    def verdict(self) -> str:
        """What can be said, in a sentence."""
        ran, others = self.ran.policy, [p for p in self.policies if p != self.ran.policy]
        if not others:
            return f"only {ran} was simulated, which ran: there is nothing to compare it with"
        if self.not_judged is not None:
            return f"no gain is called, because {self.not_judged}: do not decide by this"
        beyond = [name for name in others if any(self.policies[name].beyond_model_error.values())]
        if not beyond:
            return (
                f"no policy differs from {ran}, which ran, by more than the model error: "
                "do not decide by this"
            )
        better = [name for name in others if self._is_better(name, MAIN_METRIC)]
        named = ", ".join(map(self._named, better[:MOST_NAMED])) or "none"
        more = f" and {len(better) - MOST_NAMED} more" if len(better) > MOST_NAMED else ""
        return (
            f"{self._different(beyond, others)} by more than the model error; better in "
            f"{MAIN_METRIC}: {named}{more}"
        )

    def _different(self, names: Sequence[str], others: Sequence[str]) -> str:
        """Say how many policies differ from what ran, and in which metrics."""
        what_ran = f"from {self.ran.policy}, which ran,"
        if len(others) == 1:
            return f"{names[0]} differs {what_ran} in {self._metrics(names[0])}"
        listed = [f"{name} in {self._metrics(name)}" for name in names[:MOST_NAMED]]
        if len(names) > MOST_NAMED:
            listed.append(f"{len(names) - MOST_NAMED} more")
        differ = "policies differs" if len(names) == 1 else "policies differ"
        return f"{len(names)} of {len(others)} {differ} {what_ran} ({'; '.join(listed)})"

    def _metrics(self, name: str) -> str:
        """Return the metrics in which a policy differs from what ran."""
        beyond = self.policies[name].beyond_model_error
        metrics = [metric.replace("_", " ") for metric in beyond if beyond[metric]]
        return "all metrics" if len(metrics) == len(beyond) else ", ".join(metrics)

    def _named(self, name: str) -> str:
        worse = [m.replace("_", " ") for m in self.model_check if self._is_worse(name, m)]
        remarks = ["simulated only"] if name in self.simulated_only else []
        remarks += [f"worse in {', '.join(worse)}"] if worse else []
        return f"{name} ({'; '.join(remarks)})" if remarks else name

    def _is_better(self, name: str, metric: str) -> bool:
        policy = self.policies[name]
        return policy.beyond_model_error[metric] and policy.gain[metric] > 0

    def _is_worse(self, name: str, metric: str) -> bool:
        policy = self.policies[name]
        return policy.beyond_model_error[metric] and policy.gain[metric] < 0

    def as_json(self) -> dict[str, Any]:
        """Return what `penstock what-if --json` prints of it."""
        return {
            "ran": self.ran.policy,
            "verdict": self.verdict,
            "judged": self.not_judged is None,
            "not_judged": self.not_judged,
            "model_check": {
                metric: {
                    "recorded": check.recorded,
                    "simulated": check.simulated,
                    "error": check.error,
                    "bar": check.bar,
                    "by_run_times": check.by_run_times,
                }
                for metric, check in self.model_check.items()
            },
            "job_error": self.job_error,
            "policies": {
                name: {
                    **result.figures,
                    "simulated_only": self.simulated_only.get(name),
                    "gain": dict(result.gain),
                    "beyond_model_error": dict(result.beyond_model_error),
                    "jobs": {
                        "gain": list(map(_job, result.gainers)),
                        "lose": list(map(_job, result.losers)),
                    },
                }
                for name, result in self.policies.items()
            },
        }


def _job(change: JobChange) -> dict[str, Any]:
    return {
        "job": change.job,
        "recorded": change.recorded,
        "ran": change.ran,
        "simulated": change.simulated,
        "change": change.change,
    }


def compare(
    recording: Recording,
    ran: Ran,
    policies: Mapping[str, Any],
    task: policy_runs.Task,
    advance: Callable[[], None],
) -> WhatIf:
    """Simulate the jobs of a record under policies, of which what ran must be one."""
    outcomes = policy_runs.simulate(recording.workload, policies, task, advance)
    return judge(recording, ran, outcomes, task.window)


def judge(
    recording: Recording,
    ran: Ran,
    outcomes: Mapping[str, Outcome],
    window: tuple[float, float] | None,
) -> WhatIf:
    """Compare simulations of a record's jobs, of which what ran must be one."""
    recorded = metrics.measure(recording.run, window)
    figures = {name: outcome.figures() for name, outcome in outcomes.items()}
    ranked = policy_runs.rank(figures, ran.policy)
    base = ranked[ran.policy]
    job_error = _job_error(recording, outcomes[ran.policy].finish)
    checks = {
        metric: Check(
            recorded=getattr(recorded, metric),
            simulated=base[metric],
            least=max(job_error, NOTABLE),
        )
        for metric in HIGHER_IS_BETTER
    }
    results = {}
    for name, values in ranked.items():
        gain = values.pop("gain")
        gainers, losers = _changes(
            recording, outcomes[ran.policy].finish, outcomes[name].finish, max(job_error, NOTABLE)
        )
        judged = not recording.missing.matters
        results[name] = PolicyResult(
            figures=values,
            gain=gain,
            beyond_model_error={
                m: judged and check.is_exceeded(values[m]) for m, check in checks.items()
            },
            gainers=gainers if judged else (),
            losers=losers if judged else (),
        )
    return WhatIf(
        ran=ran,
        model_check=checks,
        job_error=job_error,
        policies=results,
        missing=recording.missing,
        window=recorded.window,
        outcomes=outcomes,
    )


def _job_error(recording: Recording, finish: Floats) -> float:
    release = recording.workload.release
    return float(np.abs((finish - release) / (recording.run.finish - release) - 1).mean())


def _changes(
    recording: Recording, before: Floats, after: Floats, least: float
) -> tuple[list[JobChange], list[JobChange]]:
    """Return the jobs that gain most and lose most, beyond the model's error for the job.

    A change must be more than `least`, too: the error of one job may be small by chance.
    """
    workload = recording.workload
    recorded, ran, simulated = (
        (finish - workload.release).tolist() for finish in (recording.run.finish, before, after)
    )
    order = np.argsort(np.array(simulated) / np.array(ran), kind="stable").tolist()
    changes = [
        JobChange(job=workload.id(j), recorded=recorded[j], ran=ran[j], simulated=simulated[j])
        for j in order
        if Check(recorded=recorded[j], simulated=ran[j], least=least).is_exceeded(simulated[j])
    ]
    gainers = [each for each in changes if each.change < 0][:MOST_JOBS]
    return gainers, [each for each in reversed(changes) if each.change > 0][:MOST_JOBS]
