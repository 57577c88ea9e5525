"""What policies gain over a base, how sure that is, and which of them to take.

Every policy has run every workload. A gain is that of the mean over workloads, relative to the
base's; its 95% interval is paired: it rests on the differences workload by workload. A win is a
workload on which a policy is better than the base.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from penstock.campaign.statistics import Estimate, Floats, paired_gain
from penstock.core import live_knowledge

Figures = Mapping[str, Mapping[str, Any]]
"""The metrics of one workload, by policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The metrics that a kind of policies is compared by."""

    higher_is_better: Mapping[str, bool]
    primary: str
    """The one that ranks, and that `gain` is of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which policy to take, and why; no policy where the workloads do not tell."""

    policy: str | None
    reason: str
    tied: Sequence[str] = ()
    """Policies that can run, and that cannot be told apart from it."""


class Contest:
    """Policies that have run the same workloads."""

    def __init__(
        self,
        workloads: Sequence[Figures],
        names: Sequence[str],
        *,
        kind: str,
        metrics: Metrics,
        base: str,
        needs: Mapping[str, frozenset[str]],
    ) -> None:
        self.kind, self.metrics, self.base, self.needs = kind, metrics, base, needs
        self.names = list(names)
        self.count = len(workloads)
        self._values = {
            name: {
                metric: np.array([figures[name][metric] for figures in workloads], np.float64)
                for metric in metrics.higher_is_better
            }
            for name in names
        }

    def values(self, name: str, metric: str = "") -> Floats:
        """Return a metric of a policy, one entry per workload."""
        return self._values[name][metric or self.metrics.primary]

    def gain(self, name: str, metric: str = "", *, over: str = "") -> Estimate:
        """Return what a policy gains over another, or over the base."""
        metric, other = metric or self.metrics.primary, over or self.base
        if name == other and self.count > 1:
            return Estimate(value=0.0, low=0.0, high=0.0)
        return paired_gain(
            self.values(name, metric),
            self.values(other, metric),
            higher_is_better=self.metrics.higher_is_better[metric],
        )

    def wins(self, name: str, metric: str = "") -> int:
        """Return on how many workloads a policy is better than the base."""
        metric = metric or self.metrics.primary
        mine, other = self.values(name, metric), self.values(self.base, metric)
        return int((mine > other if self.metrics.higher_is_better[metric] else mine < other).sum())

    def summary(self) -> dict[str, dict[str, Any]]:
        """Return each policy's means, gains, needs, and whether it can run live; best first."""
        return {name: self._entry(name) for name in self._ranked(self.names)}

    def _entry(self, name: str) -> dict[str, Any]:
        gain = self.gain(name)
        return {
            **{m: float(self.values(name, m).mean()) for m in self.metrics.higher_is_better},
            "gain": gain.value,
            "low": gain.low,
            "high": gain.high,
            "wins": self.wins(name),
            "gains": {m: self._detail(name, m) for m in self.metrics.higher_is_better},
            "needs": sorted(self.needs[name]),
            "live": self.runs_live(name),
        }

    def _detail(self, name: str, metric: str) -> dict[str, Any]:
        gain = self.gain(name, metric)
        wins = self.wins(name, metric)
        return {"value": gain.value, "low": gain.low, "high": gain.high, "wins": wins}

    def of_workload(self, k: int) -> dict[str, float]:
        """Return what each policy gains on one workload."""
        metric = self.metrics.primary
        sign = 1 if self.metrics.higher_is_better[metric] else -1
        base = self.values(self.base)[k]
        relative = {
            n: sign * (self.values(n)[k] / base - 1) if base else np.nan for n in self.names
        }
        return {name: float(gain) for name, gain in relative.items()}

    def runs_live(self, name: str) -> bool:
        """Return True if a live controller can know what the policy needs."""
        return live_knowledge.runs_live(self.kind, self.needs[name])

    def choose(self) -> Choice:
        """Return the policy to take: the best that can run live, if more than chance says so.

        Of policies that are better than the base for sure, and that no other beats for sure, it is
        the one of which a controller knows best what it needs, then the one that needs least.
        """
        metric = self.metrics.primary.replace("_", " ")
        live = [name for name in self.names if self.runs_live(name)]
        candidates = live or self.names
        among = " of those that can run live" if len(live) < len(self.names) and live else ""
        best = self._ranked(candidates)[0]
        if len(self.names) == 1:
            return Choice(policy=None, reason="a single policy: nothing to choose from")
        if self.count < 2:
            return Choice(
                policy=None,
                reason=f"{best} has the best {metric}{among}, on one workload, which does not "
                "tell how much of that is chance: add --seeds 8",
            )
        sure = [name for name in self._ranked(candidates) if self.gain(name).above_zero]
        if not sure:
            return self._keep_base(candidates, metric)
        unbeaten = [
            name
            for name in sure
            if not any(self.gain(name, over=other).below_zero for other in candidates)
        ]
        picked = min(unbeaten, key=self._demand)
        tied = [
            name
            for name in self._ranked(candidates)
            if name not in (picked, self.base) and not self.gain(picked, over=name).above_zero
        ]
        return Choice(policy=picked, reason=self._why(picked, tied, metric), tied=tied)

    def _ranked(self, names: Sequence[str]) -> list[str]:
        sign = -1 if self.metrics.higher_is_better[self.metrics.primary] else 1
        return sorted(names, key=lambda name: sign * float(self.values(name).mean()))

    def _demand(self, name: str) -> tuple[int, int, int]:
        """Return how hard it is to know what a policy needs."""
        sources = get_args(live_knowledge.Source)
        source = live_knowledge.source(self.kind, self.needs[name])
        needs = len(self.needs[name])
        return sources.index(source), needs, self._ranked(self.names).index(name)

    def _keep_base(self, candidates: Sequence[str], metric: str) -> Choice:
        """Return that no candidate is better than the base for sure."""
        near = [
            name
            for name in self._ranked(candidates)
            if name != self.base and not self.gain(name).below_zero
        ]
        if self.base not in candidates:
            return Choice(
                policy=None,
                reason=f"no policy that can run live is better in {metric} than {self.base}, which "
                "cannot; compare with one that can",
                tied=near,
            )
        if not near:
            reason = f"no policy is better in {metric} on these {self.count} workloads"
            return Choice(policy=self.base, reason=f"keep {self.base}: {reason}")
        return Choice(
            policy=self.base,
            reason=f"keep {self.base}: in {metric}, {' and '.join(near)} cannot be told apart from "
            f"it on these {self.count} workloads; more (--seeds) may tell",
            tied=near,
        )

    def _why(self, picked: str, others: Sequence[str], metric: str) -> str:
        parts = [
            f"{self.gain(picked):+.2%} {metric} over {self.base}, better on "
            f"{self.wins(picked)} of {self.count} workloads"
        ]
        if self.runs_live(picked):
            source = live_knowledge.in_words(self.kind, self.needs[picked]).partition(", ")[2]
            needs = ", ".join(sorted(self.needs[picked]))
            parts.append(f"it can run live ({needs}: {source})" if source else "it can run live")
        worse = {
            other: gain
            for other in self.metrics.higher_is_better
            if other != self.metrics.primary and (gain := self.gain(picked, other)).below_zero
        }
        if worse:
            texts = [f"{m.replace('_', ' ')} ({g.value:+.1%})" for m, g in worse.items()]
            parts.append(f"but it is worse in {' and '.join(texts)}")
        if others:
            easier = self._demand(picked)[:2] < min(self._demand(name)[:2] for name in others)
            least = ", and it needs to know less" if easier else ""
            parts.append(f"{' and '.join(others)} cannot be told apart from it{least}")
        beyond = [
            name
            for name in self._ranked(self.names)
            if not self.runs_live(name) and self.gain(name, over=picked).above_zero
        ]
        if beyond and self.runs_live(picked):
            parts.append(f"better, but not possible live: {', '.join(beyond)}")
        return f"take {picked}: {'; '.join(parts)}"
