"""What a file says of applications, checked.

Messages contain it, and commands that start often import messages: nothing large is imported here.
"""

import msgspec

from penstock.errors import InputError, error_prefix
from penstock.learn.observations import LARGEST, MOST_COUNTS, SMALLEST

LONGEST_KEY = 512
"""Bytes of a user's or an application's name; keys of PostgreSQL's index have at most 2,704."""
MOST_IMPORTED = 500
"""Applications that are imported at once: all of them, or none."""


class Imported(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a file, or an earlier version of the store, says of an application."""

    curve: dict[int, float] = {}  # bytes per second by number of I/O nodes
    volume: float | None = None  # bytes per phase
    compute: float | None = None  # seconds per phase
    w_iter: float | None = None  # seconds
    iterations: int = 1  # that w_iter is from

    def check(self, most: int | None = None) -> None:
        """Raise InputError unless this can be imported; a site has `most` I/O nodes, if known."""
        if self.curve and len(self.curve) < 2:
            raise InputError(
                f"the curve has one count, {next(iter(self.curve))}: it says nothing of any other "
                "number of I/O nodes; give two or more"
            )
        if len(self.curve) > MOST_COUNTS:
            raise InputError(f"the curve has {len(self.curve)} counts; give at most {MOST_COUNTS}")
        for count, bandwidth in self.curve.items():
            if not 0 <= count <= (LARGEST if most is None else most):
                there = (
                    "counts are zero or more"
                    if most is None
                    else f"the site has {most}; 'penstock curves import --within {most}' leaves "
                    "it out"
                )
                raise InputError(f"the curve has a bandwidth for {count} I/O nodes; {there}")
            _check(f"the bandwidth with {count} I/O nodes", bandwidth, "bytes per second")
        for name, unit in (("volume", "bytes"), ("compute", "seconds"), ("w_iter", "seconds")):
            if (value := getattr(self, name)) is not None:
                _check(name, value, unit, zero=name == "compute")
        if not (self.curve or self.volume or self.compute is not None or self.w_iter):
            raise InputError("nothing is said of it; give a curve, volume, compute or w_iter")

    def possible(self) -> "Imported":
        """Return it without what cannot be true, as a store may have it."""

        def known(value: float | None, least: float = SMALLEST) -> float | None:
            return value if value is not None and least <= value <= LARGEST else None

        return Imported(
            curve={n: b for n, b in self.curve.items() if n >= 0 and known(b) is not None},
            volume=known(self.volume),
            compute=known(self.compute, 0.0),
            w_iter=known(self.w_iter),
            iterations=max(self.iterations, 1),
        )

    def over(self, old: "Imported") -> "Imported":
        """Return this, with what only the older one has."""
        return Imported(
            curve={**old.curve, **self.curve},
            volume=old.volume if self.volume is None else self.volume,
            compute=old.compute if self.compute is None else self.compute,
            w_iter=old.w_iter if self.w_iter is None else self.w_iter,
            iterations=old.iterations if self.w_iter is None else self.iterations,
        )


class ImportedApplication(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says of one application."""

    user: str = ""  # empty: the file does not say
    application: str
    nodes: int = 1
    imported: Imported

    def check(self, most: int | None = None) -> None:
        """Raise InputError unless this can be imported; a site has `most` I/O nodes, if known."""
        with error_prefix(f"application {self.application[:40]!r}"):
            for name in (self.user, self.application):
                if len(name.encode("utf-8", "replace")) > LONGEST_KEY:
                    raise InputError(
                        f"a name has {len(name):,} characters; give at most {LONGEST_KEY} bytes"
                    )
            if not self.application:
                raise InputError("its name is empty; give one")
            if self.nodes < 1:
                raise InputError(f"nodes is {self.nodes}; give 1 or more")
            self.imported.check(most)


def _check(what: str, value: float, unit: str, *, zero: bool = False) -> None:
    if not (0 if zero else SMALLEST) <= value <= LARGEST:  # false for NaN, too
        least = "zero or more" if zero else "a positive number of"
        raise InputError(f"{what} is {value:g}; give {least} {unit}, at most {LARGEST:g}")


NOTHING_IMPORTED = Imported()
