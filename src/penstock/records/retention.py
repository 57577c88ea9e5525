"""Removes old parts of records, the oldest first, never the one that is being written."""

import math
import re
import time
from dataclasses import dataclass
from pathlib import Path

_PART = re.compile(r"record-\d{8}-\d{6}-[0-9a-f]+-\d{4,}\.jsonl(\.gz)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Parts older than `seconds` are removed, and the oldest parts beyond `bytes` in total."""

    seconds: float = math.inf
    bytes: float = math.inf

    def prune(self, directory: Path, but: Path | None = None) -> list[Path]:
        """Remove parts that are too old or too many, except one; return the removed ones."""
        if self.seconds == self.bytes == math.inf:
            return []
        parts = [
            (about.st_mtime, path.name, path, about.st_size)
            for path in directory.iterdir()
            if _PART.fullmatch(path.name) and path != but and not path.is_symlink()
            for about in (path.stat(),)
        ]
        left = sum(size for *_, size in parts)
        if but is not None and but.exists():
            left += but.stat().st_size
        oldest, removed = time.time() - self.seconds, []
        for written, _, path, size in sorted(parts):
            if written >= oldest and left <= self.bytes:
                break
            path.unlink(missing_ok=True)
            left -= size
            removed.append(path)
        return removed
