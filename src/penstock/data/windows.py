"""Rewards of TWINS windows that our own I/O nodes measured, scenario by scenario.

`windows.csv`: bandwidth of busy I/O nodes in MiB/s, their mean over each interval of a run of real
processes on the emulated file system `disks`. `penstock tuner measure` writes such a file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any

from penstock.csv_table import Table
from penstock.model.tuning import Context, power_of_two

SHIPPED = "windows.csv"
TWINS = "twins"
HOSTS = "hosts"
"""A column of files that were measured on several hosts."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Scenario:
    """What is run."""

    pattern: str
    operation: str
    request: int
    """Bytes of a request."""
    processes: int
    io_nodes: int

    @property
    def name(self) -> str:
        """Return it in a word."""
        size = f"{self.request // 1024}K"
        return f"{self.pattern}-{self.operation}-{size}-{self.processes}-{self.io_nodes}"

    @property
    def context(self) -> Context:
        """Return what its I/O nodes would be seen to be in."""
        return Context(
            operation="read" if self.operation == "read" else "write",
            pattern=self.pattern,
            size=power_of_two(self.request),
            load=power_of_two(-(-self.processes // self.io_nodes)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardSeries:
    """The rewards of a scenario with one scheduler and window, interval by interval, in MiB/s."""

    scenario: Scenario
    scheduler: str
    window: float
    """Seconds; it has a meaning with twins only."""
    rewards: tuple[float, ...]
    hosts: str = ""
    """Names of the hosts, with spaces between them, if ranks ran on several."""

    @property
    def mean(self) -> float:
        """Return the mean reward."""
        return sum(self.rewards) / len(self.rewards)

    @property
    def row(self) -> dict[str, Any]:
        """Return the series as one flat row."""
        run = {name: getattr(self.scenario, name) for name in RUN}
        rewards = " ".join(f"{reward:.4g}" for reward in self.rewards)
        return {
            **run,
            "scheduler": self.scheduler,
            "window_us": round(self.window * 1e6),
            "rewards": rewards,
            HOSTS: self.hosts,
        }


RUN = tuple(field.name for field in fields(Scenario))
COLUMNS = (*RUN, "scheduler", "window_us", "rewards")


def reward_series(row: Mapping[str, Any]) -> RewardSeries:
    """Decode a row; KeyError, TypeError or ValueError if it is invalid."""
    numbers = {name: int(row[name]) for name in ("request", "processes", "io_nodes")}
    rewards = tuple(float(reward) for reward in str(row["rewards"]).split())
    if not rewards or not all(0 <= reward < 1e12 for reward in rewards):
        raise ValueError("rewards must be numbers, one or more, none below zero")
    return RewardSeries(
        scenario=Scenario(pattern=row["pattern"], operation=row["operation"], **numbers),
        scheduler=row["scheduler"],
        window=int(row["window_us"]) / 1e6,
        rewards=rewards,
        hosts=str(row.get(HOSTS) or ""),
    )


TABLE = Table(
    holds="rewards",
    columns=COLUMNS,
    seldom=(HOSTS,),
    entry=reward_series,
    row=lambda one: one.row,
    remedy="'penstock tuner measure' writes such a file: measure again",
)
read, write = TABLE.read, TABLE.write


@cache
def shipped() -> tuple[RewardSeries, ...]:
    """Return the built-in measurements."""
    return TABLE.parse(
        files("penstock.data").joinpath(SHIPPED).read_text(encoding="utf-8"), SHIPPED
    )


def by_window(series: Sequence[RewardSeries]) -> dict[Scenario, dict[float, tuple[float, ...]]]:
    """Return the rewards of twins by scenario and window, of scenarios that have all windows."""
    windows = {one.window for one in series if one.scheduler == TWINS}
    rewards: dict[Scenario, dict[float, tuple[float, ...]]] = {}
    for one in sorted(series, key=lambda one: (one.scenario, one.window)):
        if one.scheduler == TWINS:
            rewards.setdefault(one.scenario, {})[one.window] = one.rewards
    return {scenario: each for scenario, each in rewards.items() if set(each) == windows}
