"""Workloads as .npz: a NumPy archive of the arrays of a Workload, under their names.

`format` is 1. Without a horizon `horizon` is NaN; without a profile `profile` is absent. `ids`,
`curves`, `details` and `generator` are JSON in UTF-8, as bytes, and absent if a workload has none.
Nothing is ever pickled.
"""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError, unknown
from penstock.files import reason
from penstock.model import Curve
from penstock.sim.formats import free_memory
from penstock.sim.formats.decode import Points, curve_points, parse_curve
from penstock.sim.formats.json_format import Details
from penstock.sim.workload import Generator, Workload

FORMAT = 1
ARRAYS: Mapping[str, type] = {
    "format": np.int64,
    "horizon": np.float64,
    "compute": np.float64,
    "io": np.float64,
    "offsets": np.int64,
    "release": np.float64,
    "nodes": np.int64,
    "max_share": np.float64,
    "barrier": np.int32,
    "after": np.int32,
    "profile": np.float64,
    "resource_offsets": np.int64,
    "resources": np.int32,
    "ids": np.uint8,
    "curves": np.uint8,
    "details": np.uint8,
    "generator": np.uint8,
}
OPTIONAL = frozenset({"profile", "ids", "curves", "details", "generator"})

CONVERTED = frozenset({"format", "horizon", "ids", "curves", "details", "generator"})
"""Arrays that a Workload holds in another form."""


def write(workload: Workload, path: Path) -> None:
    """Write a workload's arrays."""
    arrays: dict[str, Any] = {
        "format": np.array([FORMAT], np.int64),
        "horizon": np.array([np.nan if workload.horizon is None else workload.horizon]),
    }
    texts: dict[str, Any] = {"ids": workload.ids, "details": workload.details}
    if workload.curves is not None:
        texts["curves"] = [curve and curve_points(curve) for curve in workload.curves]
    for name, values in texts.items():
        if values is not None:
            arrays[name] = np.frombuffer(msgspec.json.encode(list(values)), np.uint8)
    if workload.generator is not None:
        arrays["generator"] = np.frombuffer(msgspec.json.encode(workload.generator), np.uint8)
    for name in [name for name in ARRAYS if name not in CONVERTED]:
        if (values := getattr(workload, name)) is not None:
            arrays[name] = values
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def read(path: Path) -> Workload:
    """Read an archive; types are checked, shapes and numbers are not."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        free = free_memory.available()
        if free is not None and size > free:
            raise MemoryError
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in _names(archive.files)}
    except (InputError, MemoryError, OSError):
        raise
    # For a damaged archive zipfile, zlib and numpy raise exceptions of many types.
    except Exception as error:
        raise InputError(
            f"not an archive that 'penstock generate --out FILE.npz' wrote ({reason(error)})"
        ) from error
    _check_types(arrays)
    horizon = float(arrays["horizon"][0])
    details = _texts(arrays, "details", list[Details])
    return Workload(
        **{name: array for name, array in arrays.items() if name not in CONVERTED},
        ids=_texts(arrays, "ids", list[str]),
        horizon=None if np.isnan(horizon) else horizon,
        curves=_curves(arrays),
        details=None if details is None else [msgspec.to_builtins(d) for d in details],
        generator=_texts(arrays, "generator", Generator),
    )


def _curves(arrays: Mapping[str, NDArray[Any]]) -> list[Curve | None] | None:
    entries = _texts(arrays, "curves", list[Points | None])
    if entries is None:
        return None
    return [p if p is None else parse_curve(p, f"curve {j}") for j, p in enumerate(entries)]


def _names(names: list[str]) -> list[str]:
    for name in names:
        if name not in ARRAYS:
            raise unknown("array", name, ARRAYS)
    for name in ARRAYS:
        if name not in names and name not in OPTIONAL:
            raise InputError(f"array {name!r} is missing; write the file with 'penstock generate'")
    return names


def _check_types(arrays: Mapping[str, NDArray[Any]]) -> None:
    for name, array in arrays.items():
        if array.dtype != ARRAYS[name] or array.ndim != 1:
            raise InputError(
                f"array {name!r} is {array.ndim}-dimensional {array.dtype}; "
                f"it must be 1-dimensional {np.dtype(ARRAYS[name])}"
            )
    if arrays["format"].tolist() != [FORMAT]:
        raise InputError(
            f"array 'format' is {arrays['format'].tolist()[:3]}; this version reads [{FORMAT}]"
        )
    if len(arrays["horizon"]) != 1:
        raise InputError(f"array 'horizon' has {len(arrays['horizon'])} entries; it must have 1")
    n = len(arrays["release"])
    for name in ("barrier", "after"):
        if ((arrays[name] < -1) | (arrays[name] >= n)).any():
            raise InputError(f"array {name!r} must hold -1 or numbers below {n}")
    if "profile" in arrays and not (np.isfinite(arrays["profile"]) & (arrays["profile"] > 0)).all():
        raise InputError("array 'profile' must hold positive, finite seconds")


def _texts(arrays: Mapping[str, NDArray[Any]], name: str, kind: Any) -> Any:
    if name not in arrays:
        return None
    try:
        return msgspec.json.decode(arrays[name].tobytes(), type=kind)
    except (ValueError, RecursionError) as error:
        raise InputError(f"array {name!r} is not the JSON it must be: {reason(error)}") from error
