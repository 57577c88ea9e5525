"""N workloads where there is one file, so that a comparison knows how sure it is.

A file that `penstock generate` wrote says what drew it: the same generator draws the others, with
the following seeds. Of any other file there are variants: each job is released later by a random
part of its own w_iter, so that its phases meet others of the other jobs. Variants tell how far
results depend on that chance, and nothing of how they would be with other jobs. Either way the
first is the file itself.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from penstock.errors import InputError, error_prefix
from penstock.sim.size_limit import TooLargeError
from penstock.sim.workload import Generator, Workload
from penstock.units import show_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """The workloads of one file."""

    name: str
    workload: Workload
    count: int
    generator: Generator | None
    """What draws the others; None: they are variants."""
    changed: bool = False
    """The file names a generator, which draws other jobs than the file has."""

    @classmethod
    def of(cls, name: str, workload: Workload, count: int) -> "Draws":
        """Look at what a file is made of."""
        generator = workload.generator if count > 1 else None
        if generator is None:
            return cls(name=name, workload=workload, count=count, generator=None)
        with error_prefix(f"{name}: generator"):
            same = _draws(generator, workload)
        drawn_by = generator if same else None
        return cls(name=name, workload=workload, count=count, generator=drawn_by, changed=not same)

    def __iter__(self) -> Iterator[tuple[int, Workload]]:
        """Yield each workload with its seed: of the generator, or of the variant (0: the file)."""
        generator = self.generator
        first = 0 if generator is None else generator.seed
        yield first, self.workload
        for k in range(1, self.count):
            yield first + k, vary(self.workload, k) if generator is None else _draw(generator, k)

    @property
    def method(self) -> str:
        """How the workloads were made, in a sentence."""
        if self.count == 1:
            return f"{self.name} as it is"
        if self.generator is not None:
            seeds = f"seeds {self.generator.seed} to {self.generator.seed + self.count - 1}"
            return f"{self.count} draws of the generator {self.generator.preset}, {seeds}"
        why = " (it was changed after it was generated)" if self.changed else ""
        variants = show_count(self.count - 1, "variant")
        return (
            f"{self.name}{why} and {variants} of it, in which each job is "
            "released later by a random part of its w_iter"
        )


def _draw(generator: Generator, k: int, *, most: int | None = None) -> Workload:
    from penstock.sim import generators  # noqa: PLC0415 - scipy takes half a second

    return generators.draw(generator.preset, generator.seed + k, generator.options, most=most)


def _draws(generator: Generator, workload: Workload) -> bool:
    """Return True if a generator draws this very workload."""
    from penstock.sim import generators  # noqa: PLC0415 - scipy takes half a second

    preset = generators.PRESETS.get(generator.preset)
    if preset is None or not set(generator.options) <= set(preset.options):
        return False  # of another version of Penstock
    try:
        return alike(workload, _draw(generator, 0, most=workload.iterations))
    except TooLargeError:
        return False
    except InputError:
        raise
    # Options that make no sense together fail in numpy or scipy, in many ways.
    except (ValueError, TypeError, ArithmeticError) as error:
        raise InputError(f"its options cannot be drawn ({error}); correct or remove it") from error


def vary(workload: Workload, seed: int) -> Workload:
    """Return the same jobs, each released later by a random part of its own w_iter."""
    later = np.random.default_rng(seed).uniform(0, 1, len(workload)) * workload.w_iter
    varied = copy.copy(workload)
    varied.release = workload.release + later
    varied.generator = None
    varied.checked_for = set()
    return varied


def alike(one: Workload, other: Workload) -> bool:
    """Return True if two workloads are the same jobs, whatever they are called."""
    return one.fingerprint() == other.fingerprint()


class Distinct:
    """Refuses a workload that was there before: counted twice, it makes intervals too narrow."""

    def __init__(self) -> None:
        self._names: dict[bytes, str] = {}

    def check(self, workload: Workload, name: str) -> None:
        """Raise InputError where a workload before was the same jobs."""
        key = workload.fingerprint()
        if key in self._names:
            raise InputError(
                f"{self._names[key]} and {name} are the same workload, and one that counts twice "
                "makes intervals too narrow; give it once"
            )
        self._names[key] = name


def check_distinct(all_draws: list[Draws]) -> None:
    """Raise InputError where two files would draw the same workload twice."""
    drawn: dict[tuple[str, str, int], str] = {}
    for draws in all_draws:
        generator = draws.generator
        if generator is None:
            continue
        for k in range(draws.count):
            key = (generator.preset, repr(sorted(generator.options.items())), generator.seed + k)
            if key in drawn:
                raise InputError(
                    f"{drawn[key]} and {draws.name} are draws of the same generator, and with "
                    f"--seeds {draws.count} both would draw seed {generator.seed + k}; give one"
                )
            drawn[key] = draws.name
