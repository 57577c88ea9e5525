"""The policies that a what-if can take: by name, as installed, and fed by what a record has."""

import inspect
import logging
import sys

import msgspec

from penstock import registry
from penstock.errors import InputError, unknown
from penstock.live.http.faults import NotFoundError

NOT_RECORDED = frozenset({"profile"})
"""What a policy may need that no record has."""
log = logging.getLogger("penstock.controller")


class PolicyChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A policy to choose."""

    name: str
    summary: str
    kind: str = "sharing"


def choices() -> list[PolicyChoice]:
    """Return the policies in the order of their names; imports them, so it is for a thread."""
    found = []
    for name in sorted(registry.table("sharing")):
        try:
            made = registry.load("sharing", name)
            needs_options = inspect.Parameter.empty in registry.options(made).values()
            needs = frozenset(getattr(made, "needs", ()))
        except Exception as error:  # a package of somebody else's may be broken
            log.warning("policy %s cannot be had: %s", name, error)
            continue
        if needs_options or needs & NOT_RECORDED:
            continue
        module = sys.modules.get(made.__module__)
        text = inspect.cleandoc((module and module.__doc__) or made.__doc__ or "")
        summary = " ".join(text.split("\n\n")[0].split()).removeprefix(f"{name}: ")
        found.append(PolicyChoice(name=name, summary=summary))
    return found


def check(names: list[str], known: list[PolicyChoice]) -> None:
    """Raise NotFoundError unless all are there, InputError if one is there twice."""
    there = [choice.name for choice in known]
    for name in names:
        if name not in there:
            raise NotFoundError(str(unknown("sharing policy", name, there)))
    if len(set(names)) < len(names):
        raise InputError("a policy is named twice; name each once")
