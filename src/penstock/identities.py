"""What a number names: a file system, an I/O node or a storage target of a site.

Each is a resource; mypy refuses one where another is meant. The engine's arrays and `ResourceId`
take any of them: which kind they have there, `sharing.scope` says.
"""

from collections.abc import Iterable
from typing import NewType

FileSystemId = NewType("FileSystemId", int)
"""The place of a file system in the site's list, counted from 0."""
IoNodeId = NewType("IoNodeId", int)
"""The number of an I/O node at the site, counted from 0."""
TargetId = NewType("TargetId", int)
"""The index of a storage target (OST) of one file system."""


def io_nodes(numbers: Iterable[int]) -> tuple[IoNodeId, ...]:
    """Return numbers of a message, or of resources, as I/O nodes."""
    return tuple(map(IoNodeId, numbers))


MOST_FILE_SYSTEMS = 8
FIRST_FILE_SYSTEM = FileSystemId(0)
"""Of a site with one file system, this one."""
