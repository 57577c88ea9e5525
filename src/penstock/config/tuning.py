"""The section of the configuration that says what the Council tunes, and how."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from penstock import registry, units
from penstock.errors import InputError, unknown
from penstock.model import Parameter, Value
from penstock.policies.base import Tuner

PARAMETERS: Mapping[str, Parameter] = MappingProxyType(
    {
        parameter.name: parameter
        for parameter in (
            # The windows of thesis forwarding (4.2.2). I/O nodes keep out of each other's way only
            # if all have the same.
            Parameter(
                name="window",
                values=(125e-6, 250e-6, 500e-6, 1e-3, 2e-3, 4e-3, 8e-3),
                default=1e-3,
                together=True,
            ),
            Parameter(name="depth", values=(2, 4, 8, 16, 32), default=16, together=False),
            Parameter(
                name="aggregation",
                values=(64 << 10, 256 << 10, 1 << 20, 4 << 20),
                default=4 << 20,
                together=False,
            ),
            Parameter(
                name="scheduler",
                values=("fifo", "time-order", "hbrr", "twins-busy"),
                default="fifo",
                together=False,
            ),
        )
    }
)
"""What can be tuned, and the values that are tried unless others are given."""
SCHEDULERS = (
    *("fifo", "time-order", "twins", "twins-busy", "twins-priority"),
    *("hbrr", "aioli", "sjf", "mlf"),
)
"""Those that I/O nodes have."""
_RANGES = {
    "window": (1e-6, 1.0, "1 us to 1 s"),
    "depth": (1, 1024, "1 to 1024"),
    "aggregation": (4 << 10, 1 << 30, "4 KiB to 1 GiB"),
}
_UNITS = {"window": units.seconds, "aggregation": units.volume}
SHORTEST, LONGEST = 0.02, 3600.0


class TuningSection(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """What the Council tunes at I/O nodes while they serve."""

    policy: Annotated[str, Meta(description="a name, or './file.py:Class'")] = "discounted-ucb"
    options: Annotated[dict[str, Any], Meta(description="a table of the policy's options")] = {}
    tune: Annotated[
        tuple[str, ...],
        Meta(description="a list of window, depth, aggregation, scheduler; empty: nothing"),
    ] = ()
    values: Annotated[
        dict[str, list[Any]], Meta(description="a table of lists: the values that are tried")
    ] = {}
    interval: Annotated[
        str | float, Meta(description="between two reports of an I/O node, as '1 s'")
    ] = 1.0
    deadline: Annotated[
        str | float, Meta(description="that a choice waits for I/O nodes that do not report")
    ] = 0.5
    guard: Annotated[
        float, Meta(description="part of the bandwidth that trying values may cost", ge=0, le=1)
    ] = 0.05
    group: Annotated[
        int, Meta(description="I/O nodes that have a Council of their own; 0: all have one", ge=0)
    ] = 0
    model: Annotated[
        str, Meta(description="a file of 'penstock patterns train'; empty: the shipped one")
    ] = ""
    dry_run: Annotated[
        bool, Meta(description="true or false: choose and tell, but set nothing?")
    ] = False

    def parameters(self, have: Mapping[str, Value]) -> list[Parameter]:
        """Return what is tuned; what I/O nodes `have` now is a value of each, and its default."""
        if missing := [name for name in self.values if name not in self.tune]:
            raise InputError(f"tuning.values has {missing[0]!r}, which tuning.tune has not")
        return [self._parameter(name, have) for name in dict.fromkeys(self.tune)]

    def _parameter(self, name: str, have: Mapping[str, Value]) -> Parameter:
        if name not in PARAMETERS:
            raise unknown("parameter of tuning.tune", name, PARAMETERS)
        plain = PARAMETERS[name]
        values = tuple(self._value(name, v) for v in self.values.get(name, plain.values))
        default = have.get(name, plain.default)
        if default not in values:
            values = (*values, default)
        if len(set(values)) < 2:
            raise InputError(f"tuning.values.{name} leaves nothing to choose; give two or more")
        return Parameter(name=name, values=values, default=default, together=plain.together)

    def _value(self, name: str, given: Any) -> Value:
        """Return a value that I/O nodes take: what they refuse is asked for for ever."""
        like = PARAMETERS[name].values[0]
        try:
            value = _UNITS[name](given) if name in _UNITS else given
        except InputError as error:
            raise InputError(f"tuning.values.{name}: {error}") from error
        except TypeError:
            value = None
        if isinstance(like, int) and isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not type(like):
            raise InputError(f"tuning.values.{name}: {given!r} is no value of it")
        if isinstance(value, str):
            if value not in SCHEDULERS:
                raise unknown(f"value of tuning.values.{name}", value, SCHEDULERS)
            return value
        least, most, words = _RANGES[name]
        if not least <= value <= most:
            raise InputError(f"tuning.values.{name}: {given!r} is out of range; give {words}")
        return value

    def tuner(self, seed: int = 0) -> Tuner:
        """Return a new tuner, made with the policy's options; its seed, if it has one, is given."""
        options = dict(self.options)
        if "seed" in registry.options(registry.load("tuning", self.policy)):
            options.setdefault("seed", seed)
        made: Tuner = registry.policy("tuning", self.policy, options)
        return made

    def seconds(self) -> tuple[float, float]:
        """Return the interval and the deadline."""
        found = []
        for key, value in (("interval", self.interval), ("deadline", self.deadline)):
            try:
                found.append(units.seconds(value))
            except InputError as error:
                raise InputError(f"tuning.{key}: {error}") from error
            if not SHORTEST <= found[-1] <= LONGEST:
                raise InputError(f"tuning.{key} is {value}; give 20 ms to 1 h")
        interval, deadline = found
        return interval, min(deadline, interval)

    def located(self) -> "TuningSection":
        """Return it with a model file that is found from any directory."""
        if not self.model:
            return self
        return msgspec.structs.replace(self, model=str(Path(self.model).resolve()))
