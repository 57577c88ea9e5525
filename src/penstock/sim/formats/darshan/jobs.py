"""Writes profiles as the jobs of a workload file, in order of their start."""

import tempfile
from pathlib import Path
from typing import IO, Any

import msgspec

from penstock.errors import InputError
from penstock.files import replacing
from penstock.learn.profiles import Profile, phases_of
from penstock.learn.profiles.profile import nodes_of
from penstock.model import Curve
from penstock.sim.formats.decode import curve_points


class Jobs:
    """Collects jobs in any order and writes them as a workload; a context manager.

    The jobs are in a scratch file; only their start times and places in it are in memory.
    """

    def __init__(self) -> None:
        self._scratch: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed on exit
        self._places: list[tuple[float, int, int]] = []
        self._names: dict[str, int] = {}

    def __enter__(self) -> "Jobs":
        return self

    def __exit__(self, *_: object) -> None:
        self._scratch.close()

    def __len__(self) -> int:
        return len(self._places)

    def add(
        self, profile: Profile, *, cores: int | None = None, curve: Curve | None = None
    ) -> None:
        """Add a run; `cores` is the number of processes per node, if its log does not have it."""
        job: dict[str, Any] = {
            "id": self._name(profile.name),
            "nodes": nodes_of(profile, cores) or 1,
            "processes": profile.processes,
            "user": profile.user,
            "executable": profile.executable,
        }
        if curve is not None:
            job["curve"] = curve_points(curve)
        job["phases"] = phases_of(profile)
        text = msgspec.json.encode(job)
        self._places.append((profile.start, self._scratch.tell(), len(text)))
        self._scratch.write(text)

    def write(self, path: Path) -> None:
        """Write the workload; releases count from the first start."""
        if not self._places:
            raise InputError("there is no job to write: no log could be read")
        first = min(self._places)[0]
        with replacing(path) as partial, partial.open("wb") as file:
            file.write(b'{"jobs":[')
            for k, (start, place, length) in enumerate(sorted(self._places)):
                self._scratch.seek(place)
                rest = self._scratch.read(length)[1:]
                file.write(b"\n" if k == 0 else b",\n")
                file.write(b'{"release":%b,' % msgspec.json.encode(start - first) + rest)
            file.write(b"\n]}\n")

    def _name(self, name: str) -> str:
        """Return a name that no other job has."""
        count = self._names.get(name, 0) + 1
        self._names[name] = count
        if count == 1:
            return name
        return self._name(f"{name}-{count}")
