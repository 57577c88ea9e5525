"""A file system of a site as people see it: in `penstock status --json` and the HTTP API."""

from typing import Annotated

import msgspec
from msgspec import Meta


class FileSystemSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What anybody may know of a file system."""

    number: Annotated[int, Meta(ge=0, description="Its number in records, counted from 0.")]
    name: str
    bandwidth: Annotated[
        float | None, Meta(description="Bytes per second, as the configuration says, or null.")
    ] = None
    bytes: Annotated[
        int,
        Meta(
            ge=0,
            description="Bytes that jobs moved on it since the controller started, as they last "
            "reported.",
        ),
    ] = 0
    transferring: Annotated[list[str], Meta(description="Jobs that transfer on it now.")] = []
    waiting: Annotated[list[str], Meta(description="Jobs that wait for their turn on it.")] = []


class FileSystemRecord(FileSystemSummary, frozen=True, kw_only=True):
    """A file system, with its directories."""

    roots: Annotated[list[str], Meta(description="The directories that are managed.")] = []

    def summary(self) -> FileSystemSummary:
        """Return the part that anybody may see."""
        names = FileSystemSummary.__struct_fields__
        return FileSystemSummary(**{name: getattr(self, name) for name in names})
