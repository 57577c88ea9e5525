"""What users say about their jobs, as NAME=VALUE,...: `penstock run --hint`, Slurm's comments."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from penstock import units
from penstock.errors import InputError, unknown
from penstock.live.protocol import messages

EXAMPLE = "volume=1GiB,period=60s,phases=20,io-nodes=2"
_LONGEST_SHOWN = 60


class JobHints(NamedTuple):
    """The hints of a job, and the number of I/O nodes that it asks for."""

    hints: messages.Hints
    io_nodes: int | None


class _Hint(NamedTuple):
    read: Callable[[str], float]
    least: float
    most: float


_HINTS: Mapping[str, _Hint] = {
    "volume": _Hint(units.volume, 1, 1e18),
    "period": _Hint(units.seconds, 1e-6, 1e8),
    "phases": _Hint(float, 1, 1e9),
    "io-nodes": _Hint(int, 0, 1024),
    "request": _Hint(units.volume, 1, 1e12),
}
_PATTERN = "pattern"


def parse(text: str, refused: list[str] | None = None) -> JobHints:
    """Read NAME=VALUE,...; raise InputError for a wrong part, or leave it out and append why."""
    values: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        try:
            if name in values:
                raise InputError(f"gives {name} twice")
            values[name] = _pattern(value) if name == _PATTERN else _value(name, value)
        except InputError as error:
            shown = part if len(part) <= _LONGEST_SHOWN else part[:_LONGEST_SHOWN] + "..."
            known = "" if "; known: " in str(error) else f"; give any of {EXAMPLE}"
            why = InputError(f"hint {shown!r}: {error}{known}")
            if refused is None:
                raise why from error
            refused.append(str(why))
    count = values.pop("io-nodes", None)
    return JobHints(messages.Hints(**values), None if count is None else int(count))


def _pattern(text: str) -> str:
    from penstock.model.observation import PATTERNS  # noqa: PLC0415 - NumPy comes with it

    if text not in PATTERNS:
        raise unknown("access pattern", text[:_LONGEST_SHOWN], PATTERNS)
    return text


def _value(name: str, text: str) -> float:
    if name not in _HINTS:
        raise unknown("hint", name[:_LONGEST_SHOWN], [*_HINTS, _PATTERN])
    hint = _HINTS[name]
    try:
        value = hint.read(text)
    except InputError:
        raise
    except ValueError as error:
        raise InputError("that is not a number") from error
    if not hint.least <= value <= hint.most:  # false of NaN, too
        raise InputError(f"it is not from {hint.least:g} to {hint.most:g}")
    return value
