"""The memory that this process may still allocate."""

from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")


def available() -> int | None:
    """Return the bytes available without swapping or being killed, or None if unknown.

    It is the smaller of the machine's free memory and the batch system's limit on the job.
    """
    return min((*_machine(), *_control_groups()), default=None)


def _machine() -> Iterator[int]:
    try:
        for line in (PROC / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) * 1024
    except (OSError, ValueError):
        return


def _control_groups() -> Iterator[int]:
    try:
        groups = [line.split(":", 2) for line in (PROC / "self/cgroup").read_text().splitlines()]
    except OSError:
        return
    for _, controllers, group in groups:
        if not controllers:
            yield from _limits(CGROUPS, group, "memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            files = "memory.limit_in_bytes", "memory.usage_in_bytes"
            yield from _limits(CGROUPS / "memory", group, *files)


def _limits(root: Path, group: str, limit: str, usage: str) -> Iterator[int]:
    leaf = root / group.lstrip("/")
    for directory in (leaf, *leaf.parents):
        try:
            # Without a limit the file has "max" (v2), or a number beyond any memory (v1).
            room = int((directory / limit).read_text()) - int((directory / usage).read_text())
            lines = (directory / "memory.stat").read_text().splitlines()
            # Cached files count as usage, but are evicted on demand.
            cached = sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file"))
        except (OSError, ValueError):
            pass
        else:
            yield max(0, room + cached)
        if directory == root:
            return
