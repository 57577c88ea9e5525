"""Archives of arrays: what is not a workload in one is refused, and nothing is unpickled."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.sim import formats, generators
from penstock.sim.formats import free_memory


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("npz") / "w.npz"
    workload = generators.PRESETS["io-sets"].make(jobs=3, seed=1, horizon=50.0)
    formats.write(workload, file)
    return file.read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": np.array([2])}, "this version reads"),
        ({"io": None}, "array 'io' is missing"),
        ({"ioo": np.zeros(1)}, "unknown array 'ioo'; did you mean 'io'"),
        ({"io": np.zeros(3)}, "offsets must rise from 0"),
        ({"io": np.zeros(3, np.float32)}, "array 'io' is 1-dimensional float32"),
        ({"io": np.zeros((3, 3))}, "array 'io' is 2-dimensional"),
        ({"io": np.array([{}], object)}, "not an archive"),
        ({"nodes": np.zeros(3)}, "it must be 1-dimensional int64"),
        ({"offsets": np.array([0, 9, 3, 16])}, "offsets must rise from 0"),
        ({"offsets": np.array([0, 1])}, "offsets must rise from 0"),
        ({"resources": np.zeros(0, np.int32)}, "resource_offsets must rise"),
        ({"barrier": np.full(3, 2**30, np.int32)}, "'barrier' must hold -1 or"),
        ({"profile": np.full(3, np.nan)}, "'profile' must hold positive"),
        ({"horizon": np.array([np.inf])}, "horizon is inf"),
        ({"ids": np.frombuffer(b'["a"]', np.uint8)}, "ids has 1 entries for 3 jobs"),
        ({"ids": np.frombuffer(b'["a", 3, "c"]', np.uint8)}, "'ids' is not the JSON"),
        ({"details": np.frombuffer(b"\xff", np.uint8)}, "'details' is not the JSON"),
        ({"compute": "nan"}, "compute is nan"),
    ],
)
def test_wrong_archives(tmp_path: Path, archive: bytes, change: Any, message: str) -> None:
    file = tmp_path / "w.npz"
    file.write_bytes(archive)
    with np.load(file) as old:
        arrays = dict(old)
    for name, values in change.items():
        if isinstance(values, str):
            arrays[name][0] = float(values)
        elif values is None:
            del arrays[name]
        else:
            arrays[name] = values
    np.savez(file, **arrays)
    with pytest.raises(InputError, match=message):
        formats.read(file)


def test_an_archive_is_never_unpickled(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "sprung",))

    file = tmp_path / "w.npz"
    np.savez(file, compute=np.array([Trap()], object))
    with pytest.raises(InputError):
        formats.read(file)
    assert not (tmp_path / "sprung").exists()


def test_a_bomb_of_zeros_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "w.npz"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("compute.npy", bytes(10_000_000))
    monkeypatch.setattr(free_memory, "available", lambda: 5_000_000)
    with pytest.raises(InputError, match="does not fit in memory"):
        formats.read(file)
