"""How busy the machine was with other work while times were measured on it."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

BUSY = 0.1
"""More than this part of all cores in use by others before or after a measurement: busy."""
STOLEN = 0.02
"""More than this part of all cores taken away by the hypervisor during a measurement: busy."""
SAMPLE = 0.25
"""Seconds over which the use of the cores is sampled while nothing of ours runs."""
STAT = Path("/proc/stat")


class MachineLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What others took of the machine around one measurement, as parts of all its cores."""

    busy: float
    """In use while nothing was measured: the larger of before and after."""
    steal: float
    """Taken by the hypervisor during the measurement."""

    @property
    def quiet(self) -> bool:
        """Whether times measured meanwhile are worth a verdict."""
        return self.busy <= BUSY and self.steal <= STOLEN


def busiest(loads: Iterable[MachineLoad]) -> MachineLoad | None:
    """Return the largest of several, value by value; None: none was recorded."""
    loads = list(loads)
    if not loads:
        return None
    return MachineLoad(
        busy=max(load.busy for load in loads), steal=max(load.steal for load in loads)
    )


class CoreTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Ticks of all cores since the machine started."""

    total: int
    idle: int
    steal: int

    @classmethod
    def parse(cls, stat: str) -> "CoreTimes":
        """Read the first line of /proc/stat: user nice system idle iowait irq softirq steal."""
        ticks = [int(word) for word in stat.split("\n", 1)[0].split()[1:9]]
        return cls(total=sum(ticks), idle=ticks[3] + ticks[4], steal=ticks[7])

    def busy_since(self, earlier: "CoreTimes") -> float:
        """Return the part of the cores that was in use, steal included."""
        idle, total = self.idle - earlier.idle, self.total - earlier.total
        return 1 - idle / total if total > 0 else 0.0

    def steal_since(self, earlier: "CoreTimes") -> float:
        """Return the part of the cores that the hypervisor took."""
        total = self.total - earlier.total
        return (self.steal - earlier.steal) / total if total > 0 else 0.0


class LoadMeter:
    """Measures the load around measurements, which follow one another."""

    def __init__(
        self,
        read: Callable[[], str] = STAT.read_text,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._read = read
        self._sleep = sleep
        self._before = self._sample()
        self._start = self._now()

    def measured(self) -> MachineLoad:
        """Return the load around what was measured since the last call, or since the start."""
        steal = self._now().steal_since(self._start)
        after = self._sample()
        load = MachineLoad(busy=max(self._before, after), steal=steal)
        self._before, self._start = after, self._now()
        return load

    def _sample(self) -> float:
        first = self._now()
        self._sleep(SAMPLE)
        return self._now().busy_since(first)

    def _now(self) -> CoreTimes:
        return CoreTimes.parse(self._read())
