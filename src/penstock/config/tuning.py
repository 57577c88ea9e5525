"""The section [tuning]: which parameters of the I/O nodes are tuned while they serve, and how."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from penstock import registry, units
from penstock.config.section import Section, quantity
from penstock.errors import InputError, unknown
from penstock.io_node_settings import DEFAULTS, SCHEDULERS
from penstock.model import Parameter, Value
from penstock.policies.base import Tuner

PARAMETERS: Mapping[str, Parameter] = MappingProxyType(
    {
        name: Parameter(
            name=name, values=values, default=getattr(DEFAULTS, name), together=name == "window"
        )
        for name, values in {
            # The windows of thesis forwarding (4.2.2). All I/O nodes must use the same one, else
            # they do not keep out of each other's way.
            "window": (125e-6, 250e-6, 500e-6, 1e-3, 2e-3, 4e-3, 8e-3),
            "depth": (2, 4, 8, 16, 32),
            "aggregation": (64 << 10, 256 << 10, 1 << 20, 4 << 20),
            "scheduler": ("fifo", "time-order", "hbrr", "twins-busy"),
        }.items()
    }
)
"""The parameters that can be tuned, and the candidate values unless [tuning] lists others."""
_RANGES = {
    "window": (1e-6, 1.0, "1 us to 1 s"),
    "depth": (1, 1024, "1 to 1024"),
    "aggregation": (4 << 10, 1 << 30, "4 KiB to 1 GiB"),
}
_UNITS = {"window": units.seconds, "aggregation": units.volume}
_INTERVALS = (0.02, 3600.0)


class TuningSection(Section, frozen=True, kw_only=True):
    """Which parameters are tuned at the I/O nodes while they serve."""

    policy: Annotated[
        str,
        Meta(
            description="a name from 'penstock policies --kind tuning', or ./file.py:Class",
            extra={"metavar": "NAME"},
        ),
    ] = "discounted-ucb"
    options: Annotated[dict[str, Any], Meta(description="a table of the policy's options")] = (
        msgspec.field(default_factory=dict)
    )
    tune: Annotated[
        tuple[str, ...],
        Meta(
            description="a list of the I/O node parameters to tune while they serve: window, "
            "depth, aggregation, scheduler",
            extra={"metavar": "NAMES"},
        ),
    ] = ()
    values: Annotated[
        dict[str, list[Any]],
        Meta(description="a table of lists: the candidate values of each parameter"),
    ] = msgspec.field(default_factory=dict)
    interval: Annotated[
        str | float, Meta(description="the time between two reports of an I/O node, as '1 s'")
    ] = 1.0
    deadline: Annotated[
        str | float, Meta(description="how long a choice waits for missing reports, as '500 ms'")
    ] = 0.5
    guard: Annotated[
        float,
        Meta(
            description="the part of the bandwidth, 0 to 1, that trying values may cost", ge=0, le=1
        ),
    ] = 0.05
    group: Annotated[
        int,
        Meta(description="the number of I/O nodes that learn together; 0 for all of them", ge=0),
    ] = 0
    model: Annotated[
        str,
        Meta(
            description="an access-pattern model of 'penstock patterns train'; empty for the "
            "shipped one"
        ),
    ] = ""
    dry_run: Annotated[
        bool, Meta(description="true to choose and log values without setting them")
    ] = False

    def check(self) -> None:
        """Raise InputError for times, parameters or values that are impossible."""
        self.seconds()
        self.parameters({})

    def parameters(self, current: Mapping[str, Value]) -> list[Parameter]:
        """Return what is tuned; the `current` value of an I/O node is a candidate and default."""
        if missing := [name for name in self.values if name not in self.tune]:
            raise InputError(f"tuning.values has {missing[0]!r}, which is not in tuning.tune")
        return [self._parameter(name, current) for name in dict.fromkeys(self.tune)]

    def _parameter(self, name: str, current: Mapping[str, Value]) -> Parameter:
        if name not in PARAMETERS:
            raise unknown("parameter of tuning.tune", name, PARAMETERS)
        standard = PARAMETERS[name]
        values = tuple(self._value(name, v) for v in self.values.get(name, standard.values))
        default = current.get(name, standard.default)
        if default not in values:
            values = (*values, default)
        if len(set(values)) < 2:
            raise InputError(f"tuning.values.{name} leaves nothing to choose; give two or more")
        return Parameter(name=name, values=values, default=default, together=standard.together)

    def _value(self, name: str, text: Any) -> Value:
        """Return a value that I/O nodes accept: what they refuse would be sent again forever."""
        example = PARAMETERS[name].values[0]
        try:
            value = _UNITS[name](text) if name in _UNITS else text
        except InputError as error:
            raise InputError(f"tuning.values.{name}: {error}") from error
        except TypeError:
            value = None
        if isinstance(example, int) and isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not type(example):
            raise InputError(f"tuning.values.{name}: {text!r} is not a value of it")
        if isinstance(value, str):
            if value not in SCHEDULERS:
                raise unknown(f"value of tuning.values.{name}", value, SCHEDULERS)
            return value
        least, most, words = _RANGES[name]
        if not least <= value <= most:
            raise InputError(f"tuning.values.{name}: {text!r} is out of range; give {words}")
        return value

    def tuner(self, seed: int = 0) -> Tuner:
        """Return a new tuner made with the policy's options; `seed` is used if it takes one."""
        options = dict(self.options)
        if "seed" in registry.options(registry.load("tuning", self.policy)):
            options.setdefault("seed", seed)
        tuner: Tuner = registry.policy("tuning", self.policy, options)
        return tuner

    def seconds(self) -> tuple[float, float]:
        """Return the interval and the deadline."""
        interval, deadline = (
            quantity(f"tuning.{key}", value, units.seconds, _INTERVALS, "20 ms to 1 h")
            for key, value in (("interval", self.interval), ("deadline", self.deadline))
        )
        return interval, min(deadline, interval)

    def with_absolute_paths(self) -> "TuningSection":
        """Return the section with a model file that can be found from any directory."""
        if not self.model:
            return self
        return msgspec.structs.replace(self, model=str(Path(self.model).resolve()))
