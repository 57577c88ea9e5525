"""Synthetic workloads: one module per paper's protocol, and the registry of generators by name."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import InputError, unknown
from penstock.model import Curve
from penstock.sim.generators import io_resources, io_sets, packs
from penstock.sim.size_limit import check_size
from penstock.sim.workload import Generator, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A workload with a name; `make` takes a seed, a limit and options by keyword."""

    description: str
    make: Callable[..., Workload]
    next: str = "penstock compare {file}"
    """What to do with it."""

    @property
    def options(self) -> dict[str, Any]:
        """The options of `make` with their defaults."""
        parameters = inspect.signature(self.make).parameters.values()
        return {p.name: p.default for p in parameters if p.name not in ("seed", "most")}


def _thirds(
    *,
    seed: int,
    jobs: int = 60,
    omega: float = 0.8,
    noise: float = 0.1,
    horizon: float = io_sets.HORIZON,
    n_h: int | None = None,
    n_m: int | None = None,
    n_l: int | None = None,
    most: int | None = None,
) -> Workload:
    thirds = ((jobs + 2) // 3, (jobs + 1) // 3, jobs // 3)
    counts = zip((n_h, n_m, n_l), thirds, strict=True)
    profiles = io_sets.three_profiles(*(t if n is None else n for n, t in counts))
    return io_sets.io_sets(
        profiles, seed=seed, omega=omega, noise=noise, horizon=horizon, most=most
    )


def _io_resources(
    *, seed: int, jobs: int = io_resources.JOBS, theta: float = 0.5, most: int | None = None
) -> Workload:
    check_size(jobs, most)
    return _on_one_resource(seed, jobs, theta, io_resources.mn4_curves())


def _targets(
    *, seed: int, jobs: int = io_resources.JOBS, theta: float = 0.5, most: int | None = None
) -> Workload:
    check_size(jobs, most)
    return _on_one_resource(seed, jobs, theta, io_resources.ost_curves())


def _on_one_resource(seed: int, jobs: int, theta: float, curves: Sequence[Curve]) -> Workload:
    drawn = io_resources.io_resources(theta, seed=seed, jobs=jobs, curves=curves)
    return io_resources.on_one_resource(drawn)


_CHOICES = packs.Choices()


def _packs(
    *,
    seed: int,
    jobs: int | None = None,
    alpha: float = 2.0,
    loads: tuple[float, float] = _CHOICES.loads,
    deviation: float = _CHOICES.deviation,
    sizes: packs.Sizes = _CHOICES.sizes,
    size_factor: float = _CHOICES.size_factor,
    most: int | None = None,
) -> Workload:
    check_size(jobs or 0, most)
    choices = packs.Choices(loads=loads, deviation=deviation, sizes=sizes, size_factor=size_factor)
    return packs.packs(alpha, seed=seed, jobs=jobs, choices=choices)


DIVIDE = "penstock allocate {file} --io-nodes 20 --nodes 480 --policy t-cpu"

PRESETS: Mapping[str, Preset] = {
    "io-sets": Preset(
        description="paper io-sets VI-B1: a third each (or n_h, n_m, n_l jobs) with w_iter around "
        "10, 100 and 1000 s",
        make=_thirds,
    ),
    "plafrim": Preset(
        description="paper io-sets VIII: the shares of sets in a year of PlaFRIM's jobs",
        make=io_sets.plafrim,
    ),
    "io-resources": Preset(
        description="paper io-resources V-C: jobs with the curves of 189 patterns of MareNostrum 4",
        make=_io_resources,
        next=DIVIDE,
    ),
    "targets": Preset(
        description="the same with synthetic curves over storage targets, most of which rise",
        make=_targets,
        next=DIVIDE,
    ),
    "packs": Preset(
        description="paper packs 6.2.2: parallel jobs whose I/O occupation (Eq. 6) is about alpha",
        make=_packs,
        next="penstock pack {file} --io-nodes 1 --nodes 2048",
    ),
}


WHOLE = ("jobs", "n_h", "n_m", "n_l")
"""Options that are numbers of jobs."""


def _shape(value: object) -> tuple[str, int]:
    """Tell texts, pairs and numbers apart: a file may give an option a value of another kind."""
    if isinstance(value, str):
        return "text", 0
    return ("several", len(value)) if isinstance(value, Sequence) else ("number", 0)


def draw(
    preset: str, seed: int, options: Mapping[str, Any] | None = None, *, most: int | None = None
) -> Workload:
    """Return the workload that a preset draws with a seed, which says so itself.

    Raise TooLargeError, before it takes memory, where it would have more than `most` iterations.
    """
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    known = PRESETS[preset].options
    for name, value in (options or {}).items():
        if name not in known:
            raise unknown(f"option of {preset}", name, known)
        missing = value is None and known[name] is not None
        if missing or _shape(value) != _shape(known[name]):
            raise InputError(
                f"option {name} of {preset} is {value!r}; give a value like {known[name]!r}"
            )
        if name in WHOLE and not isinstance(value, int | None):
            raise InputError(f"option {name} of {preset} is {value!r}; give a whole number")
    complete = known | dict(options or {})
    workload = PRESETS[preset].make(**complete, seed=seed, most=most)
    workload.generator = Generator(preset=preset, seed=seed, options=complete)
    return workload
