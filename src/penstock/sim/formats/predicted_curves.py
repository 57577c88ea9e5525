"""Jobs of which only their write is known: a model says what bandwidth they would have.

    {"id": "climate", "nodes": 64, "machine": "titan",
     "write": {"cores": 16, "burst": "100 MB", "shared": true}}

`machine` is a name that `penstock machines` lists or a TOML file, `model` a file that `penstock
write-model train` made. `over` names the stage that is divided (docs/writes/predict.md), else it is
the last group of nodes before the storage: I/O nodes, or routers.
"""

from pathlib import Path

import msgspec

from penstock import units
from penstock.errors import InputError
from penstock.model import Curve
from penstock.model.write import Write


class GivenWrite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The write of a job, whose nodes all take part in it unless told otherwise."""

    cores: int
    burst: float | str
    nodes: int | None = None
    shared: bool = False
    stripe_count: int | None = None
    stripe_size: float | str | None = None
    over: str = ""


def curve(
    given: GivenWrite, nodes: int, machine: str | None, model: str | None, where: str
) -> tuple[Curve, float]:
    """Return the curve of a job on so many nodes, and the megabytes that it writes."""
    from penstock.learn.write_models import chosen, curves  # noqa: PLC0415 - most files have none

    size = given.stripe_size
    try:
        write = Write(
            nodes=nodes if given.nodes is None else given.nodes,
            cores=given.cores,
            burst=units.volume(given.burst),
            shared=given.shared,
            stripe_count=given.stripe_count,
            stripe_size=None if size is None else units.volume(size),
        )
        found = chosen.model(machine, None if model is None else Path(model))
        return curves.curve(found, write, over=given.over), write.bytes / curves.MB
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
