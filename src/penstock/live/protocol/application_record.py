"""The record of an application for people: what `penstock curves show --json` prints."""

from typing import TYPE_CHECKING

import msgspec

from penstock.learn.observations import Spread

if TYPE_CHECKING:
    from penstock.learn.knowledge import Knowledge


class ApplicationPrior(msgspec.Struct, frozen=True, kw_only=True):
    """Points of a curve that other applications of the same class suggest."""

    counts: list[int]
    applications: int
    of_class: str  # in words


class TunedValue(msgspec.Struct, frozen=True, kw_only=True):
    """How fast I/O nodes served the application alone with a value of a parameter."""

    value: int | float | str
    rate: float  # bytes per busy second
    intervals: int


class ApplicationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an application; a value with no observations was imported, or is a prior."""

    user: str
    application: str
    nodes: int
    curve: dict[str, Spread]  # bytes per second by number of I/O nodes; "0" is direct
    source: (
        str  # of the curve: observed, imported, prior, "observed and prior", ..., or lower bound
    )
    why_unknown: str = ""  # why no bandwidth is known that it has alone, though it has run
    volume: Spread | None = None  # bytes per phase
    compute: Spread | None = None  # seconds of computation per phase
    phase_seconds: Spread | None = None  # of phases that were alone
    w_iter: Spread | None = None  # seconds
    updated: float = 0.0  # seconds since the epoch
    pattern: str | None = None  # of its requests, as detected
    request_size: int | None = None  # bytes, rounded down to a power of two
    prior: ApplicationPrior | None = None
    tuned: dict[str, dict[str, list[TunedValue]]] = {}  # by access pattern and parameter

    @classmethod
    def of(
        cls, user: str, application: str, nodes: int, knowledge: "Knowledge"
    ) -> "ApplicationRecord":
        """Return the record of an application."""
        return cls(
            user=user,
            application=application,
            nodes=nodes,
            curve={str(count): point for count, point in knowledge.curve.items()},
            source=knowledge.source,
            why_unknown=knowledge.why_unknown,
            volume=knowledge.volume,
            compute=knowledge.compute,
            phase_seconds=knowledge.history.phase_seconds,
            w_iter=knowledge.w_iter,
            updated=knowledge.updated,
            pattern=knowledge.pattern,
            request_size=knowledge.request_size,
            prior=_prior(knowledge),
            tuned=_tuned(knowledge),
        )


def _prior(knowledge: "Knowledge") -> ApplicationPrior | None:
    prior, counts = knowledge.prior, knowledge.prior_counts
    if prior is None or not counts:
        return None
    return ApplicationPrior(
        counts=counts, applications=prior.applications, of_class=str(prior.of_class)
    )


def _tuned(knowledge: "Knowledge") -> dict[str, dict[str, list[TunedValue]]]:
    return {
        pattern: {
            name: [
                TunedValue(value=one.value, rate=one.rate, intervals=one.intervals)
                for one in estimates
            ]
            for name, estimates in parameters.items()
        }
        for pattern, parameters in knowledge.tuned.estimates.items()
    }
