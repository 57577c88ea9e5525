"""Bandwidth curves for jobs that a file describes by their write alone: a model predicts them.

    {"id": "climate", "nodes": 64, "machine": "titan",
     "write": {"cores": 16, "burst": "100 MB", "shared": true}}

`machine` is a name that `penstock machines` lists or a TOML file, `model` a file that `penstock
write-model train` made. `over` names the stage that is divided (docs/writes/predict.md); by default
the last group of nodes before the storage: I/O nodes, or routers.
"""

from pathlib import Path

import msgspec

from penstock import units
from penstock.errors import error_prefix
from penstock.model import Curve
from penstock.model.write import Write


class WriteEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The write of a job; without `nodes` all nodes of the job take part in it."""

    cores: int
    burst: float | str
    nodes: int | None = None
    shared: bool = False
    stripe_count: int | None = None
    stripe_size: float | str | None = None
    over: str = ""


def predict_curve(
    entry: WriteEntry, nodes: int, machine: str | None, model_file: str | None, job: str
) -> tuple[Curve, float]:
    """Return the curve of `job` on `nodes` nodes, and the megabytes that it writes."""
    from penstock.learn.write_models import curves, model  # noqa: PLC0415 - rarely needed

    size = entry.stripe_size
    with error_prefix(job):
        write = Write(
            nodes=nodes if entry.nodes is None else entry.nodes,
            cores=entry.cores,
            burst=units.volume(entry.burst),
            shared=entry.shared,
            stripe_count=entry.stripe_count,
            stripe_size=None if size is None else units.volume(size),
        )
        predictor = model.open_model(machine, None if model_file is None else Path(model_file))
        return curves.curve(predictor, write, over=entry.over), write.bytes / curves.MB
