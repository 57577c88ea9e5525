"""The record of an application for people: what `penstock curves show --json` prints."""

import msgspec

from penstock.learn.knowledge import Knowledge
from penstock.learn.observations import Spread


class ApplicationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an application; a value with no observations was imported."""

    user: str
    application: str
    nodes: int
    curve: dict[str, Spread]  # bytes per second by number of I/O nodes; "0" is direct
    source: str  # of the curve: observed, imported, observed and imported, or none
    volume: Spread | None = None  # bytes per phase
    compute: Spread | None = None  # seconds of computation per phase
    phase_seconds: Spread | None = None  # of phases that were alone
    w_iter: Spread | None = None  # seconds
    updated: float = 0.0  # seconds since the epoch

    @classmethod
    def of(
        cls, user: str, application: str, nodes: int, knowledge: Knowledge
    ) -> "ApplicationRecord":
        """Return the record of an application."""
        return cls(
            user=user,
            application=application,
            nodes=nodes,
            curve={str(count): point for count, point in knowledge.curve.items()},
            source=knowledge.source,
            volume=knowledge.volume,
            compute=knowledge.compute,
            phase_seconds=knowledge.history.phase_seconds,
            w_iter=knowledge.w_iter,
            updated=knowledge.updated,
        )
