"""What policies gain over a base, how sure that is, and which of them to take.

Every policy has run every workload. A gain is that of the mean over workloads, relative to the
base's; its 95% interval is paired: it rests on the differences workload by workload. A win is a
workload on which a policy is better than the base.

Of many policies that are as good as the base, some have an interval above zero by chance. Which one
to take is therefore decided by wider intervals: those of all policies against the base hold at once
in 95 of 100 cases, and so do those of all pairs of the others.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from penstock.campaign.statistics import Estimate, Floats, paired_gain
from penstock.core import live_knowledge

ROUNDING = 1e-9
"""Figures that differ by less than this part do not differ: the order of additions may do that."""
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
        if_equal: str = "",
    ) -> None:
        """Take the figures of the policies; `if_equal` is advice where none of them differ."""
        self.kind, self.metrics, self.base, self.needs = kind, metrics, base, needs
        self._if_equal = if_equal
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

    def gain(self, name: str, metric: str = "", *, over: str = "", tests: int = 1) -> Estimate:
        """Return what a policy gains over another, or over the base, as one of several tests."""
        metric, other = metric or self.metrics.primary, over or self.base
        if self.count > 1 and (name == other or self._same(name, metric, over=other)):
            return Estimate(value=0.0, low=0.0, high=0.0)
        return paired_gain(
            self.values(name, metric),
            self.values(other, metric),
            higher_is_better=self.metrics.higher_is_better[metric],
            tests=tests,
        )

    def _tested(self, name: str, *, over: str = "") -> Estimate:
        """Return what a policy gains, with an interval that holds together with all others."""
        others = len(self.names) - 1
        with_base = self.base in (name, over or self.base)
        return self.gain(name, over=over, tests=others if with_base else others * (others - 1) // 2)

    def wins(self, name: str, metric: str = "") -> int:
        """Return on how many workloads a policy is better than the base."""
        metric = metric or self.metrics.primary
        mine, other = self.values(name, metric), self.values(self.base, metric)
        better = mine > other if self.metrics.higher_is_better[metric] else mine < other
        return int((better & ~np.isclose(mine, other, rtol=ROUNDING, atol=0)).sum())

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
            # Plus zero: the base gains 0, not -0.
            n: sign * (self.values(n)[k] / base - 1) + 0.0 if base else np.nan
            for n in self.names
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
        candidates = [name for name in self.names if self.runs_live(name)] or self.names
        if (undecided := self._undecided(candidates, metric)) is not None:
            return undecided
        sure = [name for name in self._ranked(candidates) if self._tested(name).above_zero]
        if not sure:
            return self._keep_base(candidates, metric)
        unbeaten = [
            name
            for name in sure
            if not any(self._tested(name, over=other).below_zero for other in candidates)
        ]
        picked = min(unbeaten, key=self._demand)
        tied = [
            name
            for name in self._ranked(candidates)
            if name not in (picked, self.base) and not self._tested(picked, over=name).above_zero
        ]
        return Choice(policy=picked, reason=self._why(picked, tied, metric), tied=tied)

    def _undecided(self, candidates: Sequence[str], metric: str) -> Choice | None:
        """Return why gains decide nothing; None if they do."""
        base = self.values(self.base)
        if len(self.names) == 1:
            return Choice(policy=None, reason="a single policy: nothing to choose from")
        if all(self._equal(name) for name in self.names):
            return self._no_difference(candidates, "any metric")
        if not np.isfinite(base).all():
            return Choice(policy=None, reason=f"no choice: {self.base} has no {metric}")
        if all(self._same(name) for name in self.names):
            return self._no_difference(candidates, metric)
        if not base.mean():
            return Choice(
                policy=None,
                reason=f"no choice: gains are relative to the {metric} of {self.base}, which is 0",
            )
        return self._one_workload(candidates, metric) if self.count < 2 else None

    def _ranked(self, names: Sequence[str]) -> list[str]:
        """Return policies, best first; those that differ by rounding stay in their order."""
        means = {name: float(self.values(name).mean()) for name in names}
        higher = self.metrics.higher_is_better[self.metrics.primary]
        rank, last = {}, math.nan
        for name in sorted(names, key=means.__getitem__, reverse=higher):
            if not math.isclose(means[name], last, rel_tol=ROUNDING):
                last = means[name]
            rank[name] = last
        return sorted(names, key=rank.__getitem__, reverse=higher)

    def _demand(self, name: str) -> tuple[int, int, int]:
        """Return how hard it is to know what a policy needs."""
        sources = get_args(live_knowledge.Source)
        source = live_knowledge.source(self.kind, self.needs[name])
        needs = len(self.needs[name])
        return sources.index(source), needs, self._ranked(self.names).index(name)

    def _equal(self, name: str) -> bool:
        """Return True if a policy has the base's figures in every metric on every workload."""
        return all(
            self._same(name, metric, without=True) for metric in self.metrics.higher_is_better
        )

    def _same(self, name: str, metric: str = "", *, over: str = "", without: bool = False) -> bool:
        """Return True if a policy has the figure of another, or of the base, on every workload.

        `without`: two that have no figure are the same, too.
        """
        mine, other = self.values(name, metric), self.values(over or self.base, metric)
        return np.allclose(mine, other, rtol=ROUNDING, atol=0, equal_nan=without)

    def _no_difference(self, candidates: Sequence[str], metric: str) -> Choice:
        """Return that all policies gave the same figures: the base is as good as any."""
        where = "this workload" if self.count == 1 else f"these {self.count} workloads"
        differ = [
            other.replace("_", " ")
            for other in self.metrics.higher_is_better
            if not all(self._same(name, other, without=True) for name in self.names)
        ]
        decides, only = (", which decides,", f"; only in {_listed(differ)}") if differ else ("", "")
        same = f"{_listed(self.names)} do not differ in {metric}{decides} on {where}{only}"
        advice = f"; {self._if_equal}" if self._if_equal else ""
        if self.count == 1 or self.base not in candidates:
            return Choice(policy=None, reason=f"no choice: {same}{advice}")
        tied = [name for name in candidates if name != self.base]
        return Choice(policy=self.base, reason=f"keep {self.base}: {same}{advice}", tied=tied)

    def _one_workload(self, candidates: Sequence[str], metric: str) -> Choice:
        """Return which policies have the best figure, and that this is no reason to take one."""
        ranked = self._ranked(candidates)
        best = [name for name in ranked if self._same(name, over=ranked[0])]
        among = " of those that can run live" if len(candidates) < len(self.names) else ""
        beyond = [
            name
            for name in self._ranked(self.names)
            if name not in candidates and self.gain(name, over=ranked[0]).value > ROUNDING
        ]
        return Choice(
            policy=None,
            reason=f"the best {metric}{among} is that of {_listed(best)}, on one workload, "
            "which does not tell how much of that is chance: add --seeds 8"
            + self._not_live({name: name for name in beyond}),
        )

    def _beyond(self, over: str) -> str:
        """Name the policies that are better for sure, but cannot run live; "" if none is."""
        return self._not_live(
            {
                name: f"{name} ({self.gain(name, over=over):+.2%})"
                for name in self._ranked(self.names)
                if not self.runs_live(name) and self._tested(name, over=over).above_zero
            }
        )

    def _not_live(self, better: Mapping[str, str]) -> str:
        """Say of better policies, each with its text, that no controller can run them."""
        return f"; better, but not possible live: {', '.join(better.values())}" if better else ""

    def _keep_base(self, candidates: Sequence[str], metric: str) -> Choice:
        """Return that no candidate is better than the base for sure."""
        near = [
            name
            for name in self._ranked(candidates)
            if name != self.base and not self._tested(name).below_zero
        ]
        if self.base not in candidates:
            return Choice(
                policy=None,
                reason=f"no policy that can run live is better in {metric} than {self.base}, which "
                "cannot; compare with one that can",
                tied=near,
            )
        beyond = self._beyond(self.base)
        if not near:
            among = " that can run live" if beyond else ""
            reason = f"no policy{among} is better in {metric} on these {self.count} workloads"
            return Choice(policy=self.base, reason=f"keep {self.base}: {reason}{beyond}")
        same = [name for name in near if self._same(name)]
        unclear = [name for name in near if name not in same]
        parts = [f"{_listed(same)} {'has' if len(same) == 1 else 'have'} the same"] if same else []
        if unclear:
            parts.append(
                f"{_listed(unclear)} cannot be told apart from it on these {self.count} workloads; "
                "more (--seeds) may tell"
            )
        alone = [name for name in unclear if self.gain(name).above_zero]
        if alone:
            parts.append(
                f"the interval of {_listed(alone)} is above zero, but among {len(self.names) - 1} "
                "policies one may be so by chance"
            )
        return Choice(
            policy=self.base,
            reason=f"keep {self.base}: in {metric}, {'; '.join(parts)}{beyond}",
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
            least = ", which needs to know less" if easier else ""
            parts.append(f"{_listed(others)} cannot be told apart from {picked}{least}")
        beyond = self._beyond(picked) if self.runs_live(picked) else ""
        return f"take {picked}: {'; '.join(parts)}{beyond}"


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
