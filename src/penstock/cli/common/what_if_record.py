"""What a what-if says of its record: what it has, what it lacks, and what is left out."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from penstock.cli.common import what_if_tables
from penstock.cli.common.workload_files import knowledge
from penstock.config import Loaded
from penstock.printable import display_name
from penstock.records import Header, Record
from penstock.sim.evaluate import what_ran
from penstock.sim.evaluate.what_ran import Ran
from penstock.sim.formats.from_record import Missing, Recording
from penstock.sim.knowledge import Knowledge
from penstock.units import show_seconds

NOTICED = 0.001
"""Seconds of delay that are worth a note."""


def left_out(record: Record, recording: Recording, ran: Ran) -> list[str]:
    """Return what the simulation leaves out; `ran` is the sharing policy."""
    users = {job.user for job in recording.workload.jobs()}
    missing = [] if recording.missing.matters else [str(recording.missing)]
    return [
        *filter(None, missing),
        *what_ran.left_out(record, ran, users),
        *filter(None, [recording.bandwidth.contradiction]),
        *recording.notes,
        *_not_simulated(recording),
    ]


def known(loaded: Loaded, header: Header) -> Knowledge:
    """Return how well policies know jobs: as when recorded, unless the configuration says."""
    if header.learn is not None and "simulation.knowledge" not in loaded.origins:
        return Knowledge(kind="learned")
    return knowledge(loaded)


def _not_simulated(recording: Recording) -> list[str]:
    """Return what turns cost a live site besides waiting, as far as the record shows it."""
    if recording.noticed < NOTICED:
        return []
    return [
        f"ends of phases were noticed {show_seconds(recording.noticed)} late on average: enforced, "
        "a turn lasts that much longer, which the simulation leaves out"
    ]


def _missing(missing: Missing) -> dict[str, Any]:
    return {
        "events": missing.events,
        "unmatched": missing.unmatched,
        "matters": missing.matters,
    }


def about(
    record: Record, recording: Recording, knowledge: Knowledge, notes: Sequence[str]
) -> dict[str, Any]:
    """Return what is said of the record that was simulated."""
    header = record.header
    source = filter(None, [what_ran.SOURCES.get(header.source)])
    return {
        "files": [display_name(path) for path in record.paths],
        "run": header.run,
        "source": header.source,
        "began": datetime.fromtimestamp(header.epoch + header.began, UTC).isoformat(),
        "policy": header.sharing.policy,
        "mode": header.mode,
        "jobs": len(recording.workload),
        "iterations": recording.iterations,
        "omega": recording.workload.omega,
        "knowledge": knowledge.kind,
        "bandwidth": asdict(recording.bandwidth) | {"fitted": recording.bandwidth.fitted},
        "missing": _missing(recording.missing),
        "cuts": asdict(recording.cuts),
        "notes": [*source, *what_if_tables.cuts(asdict(recording.cuts)), *notes],
    }
