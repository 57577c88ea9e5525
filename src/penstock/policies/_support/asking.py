"""The call of a policy's method: whatever it raises, its host goes on, and knows whom it asked.

A policy may come from a user's file. `sys.exit()` in it is no reason for a simulation to end as if
it had succeeded, or for a controller to end at all. What a policy returns may have code of its own
(`__eq__`, `__lt__`, `__repr__`): it becomes plain data before its host goes on with it.
"""

from collections.abc import Callable
from functools import partial
from types import CodeType, FrameType
from typing import Any, TypeVar

import numpy as np

from penstock.errors import InputError

LONGEST_TEXT = 200
"""Characters of a value in an error message."""
PLAIN = frozenset({str, int, float, bool, type(None)})
_T = TypeVar("_T")


class OutOfTime(BaseException):
    """A host interrupts a policy; no Exception, which a policy may catch by habit."""


def ask(
    policy: object, method: str, *arguments: Any, plain: Callable[[Any], Any] | None = None
) -> Any:
    """Return what a method of a policy answers, made plain; InputError instead of an end."""
    return guard(policy, f"{method}()", _answer, policy, method, arguments, plain)


def guarded(policy: object, method: str) -> Callable[..., Any]:
    """Return a policy's method that raises InputError where it would end the program."""
    return partial(guard, policy, f"{method}()", getattr(policy, method))


def guard(policy: object, part: str, function: Callable[..., _T], *arguments: Any) -> _T:
    """Call a function that runs a part of a policy; InputError where it would end the program.

    An interrupt stays one, and names the part that was being asked.
    """
    try:
        return function(*arguments)
    except Exception:
        raise
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(f"in {_name(policy, part)}") from error
    except OutOfTime as error:
        message = f"{_name(policy, part)} took more than {error} of processor time"
        raise InputError(message) from error
    except BaseException as error:
        raise ending(_name(policy, part), error) from error


def policy_method(frame: FrameType | None) -> str | None:
    """Return the method, with its policy, that a frame is a part of; None: of no policy."""
    while frame is not None:
        if frame.f_code is _GUARD:
            return _name(frame.f_locals["policy"], frame.f_locals["part"])
        frame = frame.f_back
    return None


def is_in_policy(frame: FrameType | None) -> bool:
    """Tell whether a frame is in a policy, below the call that catches what it raises."""
    return (
        frame is not None and frame.f_code is not _GUARD and policy_method(frame.f_back) is not None
    )


def ending(what: str, error: BaseException) -> InputError:
    """Return what is wrong with a part of a policy that raised SystemExit or the like."""
    return InputError(
        f"{what} raised {shown(error)}; a policy must not end the program that calls it"
    )


def shown(value: object) -> str:
    """Return a value as text for a message, bounded."""
    text = repr(value)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."


def plain_number(value: object) -> float | None:
    """Return a number as a plain one, whose comparisons run no code of a policy; None: not one.

    By `type`, since `isinstance` asks the value itself for its class.
    """
    if issubclass(type(value), float):
        return float.__float__(value)  # type: ignore[arg-type]
    return int.__int__(value) if issubclass(type(value), int) else None  # type: ignore[arg-type]


def plain_key(value: object) -> object:
    """Return a string, number, None or tuple of these as plain data; TypeError for all else."""
    kind = type(value)
    if kind in PLAIN:
        return value
    if issubclass(kind, tuple):
        return tuple(map(plain_key, tuple.__iter__(value)))  # type: ignore[arg-type]
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, np.generic):
        item = np.generic.item(value)  # type: ignore[call-overload]
        if type(item) in PLAIN:
            return item
    if (number := plain_number(value)) is not None:
        return number
    raise TypeError


def _answer(
    policy: object, method: str, arguments: tuple[Any, ...], plain: Callable[[Any], Any] | None
) -> Any:
    answer = getattr(policy, method)(*arguments)
    return answer if plain is None else plain(answer)


def _name(policy: object, part: str) -> str:
    return f"{part} of policy {type(policy).__name__}"


_GUARD: CodeType = guard.__code__
