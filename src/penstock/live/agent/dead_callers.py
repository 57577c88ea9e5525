"""Whether those live who say that they are amid a call: who was killed never says that it is over.

A process that nobody has waited for yet is dead, and so is a thread whose process called exec.
"""

import os
from functools import cache
from pathlib import Path

from penstock.live.protocol.shared_page import SlotOwner

_DEAD = ("Z", "X")


def lives(thread: SlotOwner) -> bool:
    """Say whether a thread lives, or its process where that is all that is known of it.

    Where nothing can be found out, it does: ids of another namespace mean nothing here.
    """
    if thread.namespace not in (0, _namespace()):
        return True
    try:
        os.kill(thread.pid, 0)
    except ProcessLookupError:
        return False
    except (OverflowError, PermissionError):
        return True
    tasks = Path(f"/proc/{thread.pid}/task")
    try:
        # A process lives for as long as any thread does, also when its first has ended.
        which = [tasks / str(thread.id)] if thread.id else tasks.iterdir()
        return any(map(_runs, which)) or not tasks.is_dir()
    except OSError:
        return True


def _runs(task: Path) -> bool:
    try:
        stat = (task / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return not stat.rpartition(")")[2].lstrip().startswith(_DEAD)


@cache
def _namespace() -> int:
    try:
        return Path("/proc/self/ns/pid").stat().st_ino & 0xFFFFFFFF
    except OSError:
        return 0
