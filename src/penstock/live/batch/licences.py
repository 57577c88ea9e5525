"""Slurm licences of a file system: hold some back while jobs wait for their turn.

Slurm 22.05 cannot change the number of licences, but a reservation can hold some of them back.
Runs in `penstock slurm`, as Slurm's administrator.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from penstock.errors import InputError
from penstock.live.batch.queue import run_command
from penstock.live.protocol import messages

_LICENCE = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*):(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Licence:
    """The licences of a file system, as in `Licenses=` of slurm.conf: "fs:8"."""

    name: str
    total: int

    @classmethod
    def parse(cls, text: str) -> "Licence":
        """Parse NAME:TOTAL."""
        if not (match := _LICENCE.fullmatch(text)):
            raise InputError(f"licence {text!r}: give it as in slurm.conf's Licenses, like fs:8")
        return cls(name=match[1], total=int(match[2]))

    @property
    def reservation(self) -> str:
        """The name of the reservation that holds licences back."""
        return f"penstock-{self.name}"


def hold_back(licence: Licence, count: int, run: Callable[..., str] = run_command) -> int:
    """Hold `count` licences back from jobs; return how many were held back before.

    Jobs keep the licences that they have; the count is reached as they end.
    """
    if not 0 <= count <= licence.total:
        raise InputError(f"cannot hold back {count} of {licence.total} {licence.name} licences")
    before = held_back(licence, run)
    if before is None and count:
        run(
            "scontrol",
            "create",
            "reservation",
            f"ReservationName={licence.reservation}",
            f"Licenses={licence.name}:{count}",
            "StartTime=now",
            "Duration=UNLIMITED",
            "Users=root",
            "Flags=ANY_NODES",
        )
    elif before is not None and not count:
        run("scontrol", "delete", f"ReservationName={licence.reservation}")
    elif before != count and count:
        licences = f"Licenses={licence.name}:{count}"
        run("scontrol", "update", f"ReservationName={licence.reservation}", licences)
    return before or 0


def held_back(licence: Licence, run: Callable[..., str] = run_command) -> int | None:
    """Return how many licences are held back, or None without a reservation."""
    for line in run("scontrol", "--oneliner", "show", "reservation").splitlines():
        words = dict(word.partition("=")[::2] for word in line.split())
        if words.get("ReservationName") == licence.reservation:
            match = _LICENCE.search(words.get("Licenses", ""))
            return int(match[2]) if match else 0
    return None


def licences_to_hold_back(status: messages.Status, licence: Licence) -> int:
    """Return one licence for each running job that waits for its turn.

    A job that waits shows that there are more I/O-heavy jobs than the file system serves at once.
    """
    waiting = sum(job.state == "running" and job.doing == "waiting" for job in status.jobs)
    return min(waiting, licence.total)
