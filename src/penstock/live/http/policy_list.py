"""The policies that a what-if can use: installed, needing no options, and fed by a record."""

import inspect
import logging
import sys

import msgspec

from penstock import registry
from penstock.errors import InputError, unknown
from penstock.live.http.dispatch import NotFoundError

NOT_RECORDED = frozenset({"profile"})
"""Needs of policies that no record contains."""
log = logging.getLogger("penstock.controller")


class PolicyChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A policy to choose."""

    name: str
    summary: str
    kind: str = "sharing"


def choices() -> list[PolicyChoice]:
    """Return the policies sorted by name; it imports them, so call it in a thread."""
    policies = []
    for name in sorted(registry.table("sharing")):
        try:
            policy = registry.load("sharing", name)
            needs_options = inspect.Parameter.empty in registry.options(policy).values()
            needs = frozenset(getattr(policy, "needs", ()))
        except Exception as error:  # a third party's package may be broken
            log.warning("policy %s cannot be loaded: %s", name, error)
            continue
        if needs_options or needs & NOT_RECORDED:
            continue
        module = sys.modules.get(policy.__module__)
        text = inspect.cleandoc((module and module.__doc__) or policy.__doc__ or "")
        summary = " ".join(text.split("\n\n")[0].split()).removeprefix(f"{name}: ")
        policies.append(PolicyChoice(name=name, summary=summary))
    return policies


def check(names: list[str], policies: list[PolicyChoice]) -> None:
    """Raise NotFoundError if one of the names is unknown, InputError if one occurs twice."""
    available = [policy.name for policy in policies]
    for name in names:
        if name not in available:
            raise NotFoundError(str(unknown("sharing policy", name, available)))
    if len(set(names)) < len(names):
        raise InputError("a policy is named twice; name each once")
