"""What is wrong with a policy, seen when it is loaded: before it decides about anything.

A misspelt method is never called, a need that nobody knows is never met, and neither is seen in a
result. Policies come from files and from other packages, so every one that is loaded is looked at.
"""

import inspect
from collections.abc import Mapping, Set
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from penstock.policies.base import NEEDS

MOST_PLACES = 2**31 - 1
"""As many as the engine can count."""
RESOURCE_NEEDS = frozenset(
    {"nodes", "processes", "volume", "compute", "curve", "best-count", "w_iter"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """The members of one kind of policy: arguments by method, types by attribute."""

    required: Mapping[str, int]
    optional: Mapping[str, int]
    attributes: Mapping[str, type]
    needs: Set[str]


_KINDS: Mapping[str, _Kind] = {
    "sharing": _Kind(
        required={"group": 1, "weight": 1, "turn": 2},
        optional={"observe": 2},
        attributes={
            "preemptive": bool,
            "dynamic": bool,
            "reweighs": bool,
            "in_order": bool,
            "places": int,
        },
        needs=NEEDS.keys(),
    ),
    "allocation": _Kind(
        required={"allocate": 1},
        optional={"place": 3},
        attributes={
            "sticky": bool,
            "brings": str,
            "joint": bool,
            "falls_back": str,
            "least_points": int,
            "offline": str,
        },
        needs=RESOURCE_NEEDS,
    ),
    "placement": _Kind(
        required={"place": 3},
        optional={"allocate": 1},
        attributes={"joint": bool, "sticky": bool, "brings": str, "offline": str},
        needs=RESOURCE_NEEDS,
    ),
    "packing": _Kind(required={"pack": 2}, optional={}, attributes={}, needs=RESOURCE_NEEDS),
    "tuning": _Kind(
        required={"choose": 2, "best": 2, "learn": 3, "learned": 0, "restore": 1},
        optional={},
        attributes={},
        needs=frozenset(),
    ),
}
_VIEW_TOO = {"group", "weight"}
"""Methods that may take the view as one argument more."""


def problems(kind: str, policy: Any) -> list[str]:
    """Return what is wrong with a policy of a kind, one sentence each."""
    members = _KINDS[kind]
    wrong = []
    for method, arguments in {**members.required, **members.optional}.items():
        function = getattr(policy, method, None)
        if function is None:
            if method in members.required:
                wrong.append(f"it has no method {method}()")
        elif not callable(function):
            wrong.append(f"{method} is {function!r}; it must be a method")
        elif not _takes(function, {arguments, arguments + (method in _VIEW_TOO)}):
            wrong.append(f"{method}{inspect.signature(function)} must take {_arguments(method)}")
    for name, type_ in members.attributes.items():
        value = getattr(policy, name, None)
        # True is an int, and no number of places.
        if value is not None and (not isinstance(value, type_) or type(value) is not type_):
            wrong.append(f"{name} is {value!r}; give {_VALUES[type_]}")
    places = getattr(policy, "places", 1)
    if kind == "sharing" and isinstance(places, int) and not 1 <= places <= MOST_PLACES:
        wrong.append(f"places is {places}; give 1 to {MOST_PLACES}")
    return wrong + _misspelt(kind, policy) + _needs(kind, policy)


_VALUES = {bool: "True or False", int: "a whole number", str: "a name"}


def _takes(function: Any, counts: Set[int]) -> bool:
    """Tell whether a bound method can be called with one of these numbers of arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    for count in counts:
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return True
    return False


def _arguments(method: str) -> str:
    return {
        "group": "(job) or (job, view)",
        "weight": "(job) or (job, view)",
        "turn": "(request, view)",
        "observe": "(event, view)",
        "allocate": "(view)",
        "place": "(view, counts, staying)",
        "pack": "(jobs, site)",
        "choose": "(context, values)",
        "best": "(context, values)",
        "learn": "(context, value, reward)",
        "learned": "no argument",
        "restore": "(learned)",
    }[method]


def _misspelt(kind: str, policy: Any) -> list[str]:
    """Find public members that nobody calls and that look like one that is called."""
    members = _KINDS[kind]
    known = [*members.required, *members.optional, *members.attributes, "needs"]
    own = {
        name
        for cls in type(policy).__mro__
        if not cls.__module__.startswith("penstock.policies.") and cls is not object
        for name in vars(cls)
    }
    options = inspect.signature(type(policy).__init__).parameters
    wrong = [
        f"nothing reads {name!r}: did you mean {close[0]!r}?"
        for name in sorted(own - {*known, *options})
        if not name.startswith("_") and (close := get_close_matches(name, known, 1, cutoff=0.75))
    ]
    # Before `turn` decided, `order` named who goes first; with both, `order` is harmless.
    if "order" in own and "turn" not in own and getattr(policy, "order", None) is not None:
        wrong.append("nothing reads 'order': write turn(), which says who goes first")
    return wrong


def _needs(kind: str, policy: Any) -> list[str]:
    needs: Any = getattr(policy, "needs", frozenset())
    if not isinstance(needs, Set) or not all(isinstance(need, str) for need in needs):
        return [f"needs is {needs!r}; give a set of names, such as frozenset({{'w_iter'}})"]
    known = _KINDS[kind].needs
    all_known = ", ".join(sorted(known)) or "nothing"
    return [
        f"needs {need!r} is unknown; {kind} policies may need {all_known}"
        for need in sorted(needs - known)
    ]
