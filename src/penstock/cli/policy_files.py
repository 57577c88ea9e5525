"""Policies of the user's own, in files that workers elsewhere must see as well."""

import hashlib
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import InputError
from penstock.files import reason

MARK = ".py:"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFile:
    """A policy in a file: its name from anywhere, and what the file says."""

    path: str
    attribute: str
    digest: str

    @property
    def name(self) -> str:
        """The policy's name for the registry."""
        return f"{self.path}:{self.attribute}"

    def check(self) -> None:
        """Raise unless this host has the same file."""
        advice = "put it where all workers see it, or run --on local"
        try:
            found = _digest(Path(self.path))
        except OSError as error:
            raise InputError(
                f"a worker on {platform.node()} cannot read the policy file {self.path} "
                f"({reason(error)}); {advice}"
            ) from error
        if found != self.digest:
            raise InputError(
                f"a worker on {platform.node()} has another policy file {self.path}; {advice}"
            )


def policy_files(policies: Iterable[str]) -> dict[str, PolicyFile]:
    """Return the files of those policies that are named by one."""
    found = {}
    for policy in policies:
        if MARK in policy:
            file, _, attribute = policy.rpartition(":")
            path = Path(file).resolve()
            found[policy] = PolicyFile(path=str(path), attribute=attribute, digest=_digest(path))
    return found


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
