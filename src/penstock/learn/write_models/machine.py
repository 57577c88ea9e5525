"""A machine as a write sees it: a path of stages, described in a file (docs/formats/machines.md).

Paper write-models, II-B and III-A: the time of a write depends on the load on the stages between
compute nodes and storage targets. A stage has one symbol in the names of features: `s_b` is the
largest number of the write's compute nodes behind one component of stage `b`, and `n_b` the number
of its components in use.
"""

import functools
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from penstock import units
from penstock.errors import InputError, unknown
from penstock.files import reason

Kind = Literal["metadata", "subblocks", "node", "group", "network", "server", "target"]
OPERATIONS = ("metadata", "subblocks")
"""Kinds whose load is in operations; all others are loaded with bytes."""
LARGEST = 10**7
"""Largest number of components that is accepted."""


class Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """One stage; which fields apply depends on its kind."""

    name: Annotated[str, Meta(description="the name that people see", min_length=1)]
    kind: Annotated[
        Kind,
        Meta(
            description="metadata, subblocks, node (compute nodes), group (of compute nodes), "
            "network (one for all), server or target"
        ),
    ]
    symbol: Annotated[str, Meta(description="in the names of features", pattern="^[a-z]*$")] = ""
    through: Annotated[
        str, Meta(description="metadata: symbol of the group whose members send it together")
    ] = ""
    nodes_each: Annotated[
        int, Meta(description="group: compute nodes behind a component", ge=0, le=LARGEST)
    ] = 0
    skewed: Annotated[
        bool, Meta(description="server, target: is the busiest one's load a feature?")
    ] = False
    of_a_burst: Annotated[
        str,
        Meta(
            description="server, target: symbol for those that one burst uses", pattern="^[a-z]*$"
        ),
    ] = ""
    bandwidth: Annotated[
        str | float | None, Meta(description="of one component, as '2 GB/s'; None: not known")
    ] = None
    rate: (
        Annotated[
            float, Meta(description="metadata, subblocks: operations per second", ge=1e-3, le=1e12)
        ]
        | None
    ) = None


class Striping(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """How a file is spread over targets."""

    targets: Annotated[int, Meta(ge=1, le=LARGEST)]
    servers: Annotated[int, Meta(ge=1, le=LARGEST)]
    size: Annotated[str | float, Meta(description="of a stripe or block, as '8 MiB'")]
    count: Annotated[int, Meta(description="targets of a file; 0: all", ge=0, le=LARGEST)] = 0
    selectable: Annotated[bool, Meta(description="may users choose size and count?")] = field(
        default=False, name="chosen"
    )
    subblocks: Annotated[
        int, Meta(description="parts of a block that hold the end of a file", ge=0, le=LARGEST)
    ] = 0
    set_by: Annotated[
        str, Meta(description="the command that chooses, with {size}, {count} and {path}")
    ] = ""


Part = Annotated[float, Meta(ge=0, lt=1)]


class Interference(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """Other load and noise in a simulated write (docs/formats/machines.md); no model sees it."""

    pieces: Annotated[
        float,
        Meta(description="runs of neighbours a job's nodes lie in, on average", ge=1, le=LARGEST),
    ] = 2.0
    scattered: Annotated[Part, Meta(description="fraction of jobs whose nodes lie anywhere")] = 0.1
    overlap: Annotated[
        float,
        Meta(
            description="how far stages overlap: 1 is one after the other, more is better",
            ge=1,
            le=100,
        ),
    ] = 3.0
    load: Annotated[Part, Meta(description="fraction of shared components that other jobs use")] = (
        0.1
    )
    swing: Annotated[
        float, Meta(description="standard deviation of the load's log-odds, slow", ge=0, le=3)
    ] = 0.5
    memory: Annotated[
        Part, Meta(description="correlation of the load from one run to the next")
    ] = 0.5
    hit: Annotated[Part, Meta(description="fraction of components in another job's burst")] = 0.1
    loss: Annotated[Part, Meta(description="fraction of a component that such a burst uses")] = (
        field(default=0.3, name="taken")
    )
    lasts: Annotated[float, Meta(description="seconds of another job's burst", gt=0, le=1e6)] = 20.0
    stalls: Annotated[
        float, Meta(description="stalls per hour of a component in use", ge=0, le=3600)
    ] = 0.1
    stall: Annotated[float, Meta(description="seconds of the shortest stall", gt=0, le=600)] = 1.0
    tail: Annotated[float, Meta(description="Pareto exponent of stalls", gt=1, le=100)] = 1.5
    noise: Annotated[
        float, Meta(description="standard deviation of a run's log time", ge=0, le=3)
    ] = 0.03


class Machine(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """A machine and its file system."""

    name: Annotated[str, Meta(min_length=1)]
    title: str = ""
    source: Annotated[str, Meta(description="where the numbers are from")] = ""
    nodes: Annotated[int, Meta(description="compute nodes", ge=1, le=LARGEST)]
    cores: Annotated[int, Meta(description="cores of a compute node", ge=1, le=LARGEST)]
    striping: Striping
    stage: Annotated[tuple[Stage, ...], Meta(min_length=1)]
    cross: Annotated[
        tuple[tuple[str, str], ...], Meta(description="pairs of features to be multiplied")
    ] = ()
    interference: Interference = Interference()

    @property
    def groups(self) -> Iterator[Stage]:
        """Return the stages whose components serve a fixed set of compute nodes each."""
        return (stage for stage in self.stage if stage.kind == "group")

    def one(self, kind: Kind) -> Stage | None:
        """Return the stage of a kind, if there is one."""
        return next((stage for stage in self.stage if stage.kind == kind), None)

    @property
    def block(self) -> float:
        """Return the default stripe size in bytes."""
        return _bytes(self.striping.size)


@functools.cache
def _bytes(size: float | str) -> float:
    """Read a stripe size; simulated writes ask for the same one hundreds of thousands of times."""
    return units.volume(size)


def load(name: str) -> Machine:
    """Return a built-in machine, or the machine of a TOML file."""
    if name.endswith(".toml"):
        path = Path(name)
        try:
            return parse(path.read_bytes(), name)
        except OSError as error:
            raise InputError(f"{name} cannot be read: {reason(error)}") from error
    directory = files("penstock.data").joinpath("machines")
    if name not in names():
        raise unknown("machine (or a file, NAME.toml)", name, names())
    return parse(directory.joinpath(f"{name}.toml").read_bytes(), f"{name}.toml")


def names() -> list[str]:
    """Return the names of the built-in machines."""
    directory = files("penstock.data").joinpath("machines")
    paths = (Path(entry.name) for entry in directory.iterdir())
    return sorted(path.stem for path in paths if path.suffix == ".toml")


def parse(content: bytes, name: str) -> Machine:
    """Parse a TOML text; InputError if it does not describe a machine."""
    try:
        machine = msgspec.toml.decode(content, type=Machine)
        check(machine)
    except (msgspec.DecodeError, msgspec.ValidationError, InputError) as error:
        raise InputError(f"{name}: {reason(error)}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not UTF-8 text; save it as UTF-8") from error
    return machine


def check(machine: Machine) -> None:
    """Raise InputError for an inconsistent description."""
    striping = machine.striping
    if striping.servers > striping.targets:
        raise InputError(f"{striping.servers} servers for {striping.targets} targets; swap them?")
    if striping.count > striping.targets:
        raise InputError(f"a stripe count of {striping.count} on {striping.targets} targets")
    if not 1 <= machine.block <= 2**60:
        raise InputError(f"striping.size is {machine.block:g} bytes; give some, as '1 MiB'")
    if twice := _repeated([stage.name for stage in machine.stage]):
        raise InputError(f"two stages have the name {twice!r}; each needs its own")
    # "sub" is taken by n_sub, the subblocks of a burst.
    symbols = ["sub", *(s for one in machine.stage for s in (one.symbol, one.of_a_burst) if s)]
    if twice := _repeated(symbols):
        conflict = "means subblocks" if twice == "sub" else "is given twice"
        raise InputError(f"symbol {twice!r} {conflict}; a stage, and 'of-a-burst', need their own")
    for stage in machine.stage:
        _check_stage(stage, machine)
    # The features check the pairs in `cross`; features imports this module.
    from penstock.learn.write_models.features import all_features  # noqa: PLC0415

    all_features(machine)


def _repeated(words: list[str]) -> str | None:
    return next((word for word in words if words.count(word) > 1), None)


def _check_stage(stage: Stage, machine: Machine) -> None:
    if stage.kind in ("group", "server", "target") and not stage.symbol:
        raise InputError(f"stage {stage.name!r} needs a symbol")
    if stage.kind == "group" and not 1 <= stage.nodes_each <= machine.nodes:
        raise InputError(
            f"stage {stage.name!r}: nodes-each is {stage.nodes_each}; "
            f"give 1 to {machine.nodes}, the compute nodes"
        )
    if stage.kind == "subblocks" and not machine.striping.subblocks:
        raise InputError(
            f"stage {stage.name!r} needs striping.subblocks; give it, or no such stage"
        )
    groups: dict[str, Any] = {other.symbol: other for other in machine.groups}
    if stage.through and stage.through not in groups:
        raise unknown(f"symbol that stage {stage.name!r} goes through", stage.through, groups)
    if stage.bandwidth is not None:
        try:
            if not 1 <= units.bandwidth(stage.bandwidth) <= 1e18:
                raise InputError("it is not a bandwidth; give one, as '2 GB/s', or leave it out")
        except InputError as error:
            raise InputError(f"bandwidth of stage {stage.name!r}: {error}") from error
