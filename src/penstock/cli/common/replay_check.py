"""The result of a replay, for people and programs: `penstock what-if --check`."""

from collections.abc import Collection, Sequence
from typing import Any

from penstock.cli.common.output import emit_json
from penstock.cli.common.terminal import echo
from penstock.model import Action
from penstock.records import Difference, Record, replay

FAILED = 1


def check(record: Record, trusted: Collection[str], *, as_json: bool) -> int:
    """Replay a record, and print whether the decisions are the same; return the exit status."""
    replayed = replay(record, trusted=trusted)
    different = replayed.first_difference
    if as_json:
        emit_json(
            {
                "events": replayed.events,
                "actions": replayed.actions,
                "same": different is None,
                "first_difference": None if different is None else _description(different),
            }
        )
    elif different is None:
        echo(f"{replayed.events:,} events, {replayed.actions:,} actions: same decisions")
    else:
        echo(f"the decisions on the first {replayed.events:,} events are the same; then:")
        for key, value in _description(different).items():
            echo(f"  {key:9} {value}")
    return 0 if different is None else FAILED


def _description(different: Difference) -> dict[str, Any]:
    return {
        "where": different.where,
        "event": repr(different.event),
        "recorded": _listed(different.recorded),
        "replayed": _listed(different.replayed),
    }


def _listed(actions: Sequence[Action] | None) -> list[str] | str:
    return "the policy failed" if actions is None else [repr(action) for action in actions]
