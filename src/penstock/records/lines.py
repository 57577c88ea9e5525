"""One line of a record: an event and the actions that it led to, both by name.

{"event":"PhaseBegan","time":3.5,"job":"a","resources":[0],"io":null,
 "actions":[{"action":"Admit","job":"a","resource":0,"weight":1.0,"max_share":1.0}]}
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.errors import InputError, unknown
from penstock.model import (
    Action,
    Admit,
    Assign,
    Event,
    Hold,
    JobEnded,
    JobStarted,
    NodeDown,
    NodeUp,
    PhaseBegan,
    PhaseEnded,
    WakeAt,
    Woke,
)

EVENTS: Mapping[str, msgspec.json.Decoder[Any]] = {
    kind.__name__: msgspec.json.Decoder(kind)
    for kind in (
        JobStarted,
        JobEnded,
        PhaseBegan,
        PhaseEnded,
        NodeUp,
        NodeDown,
        Woke,
    )
}
ACTIONS: Mapping[str, msgspec.json.Decoder[Any]] = {
    kind.__name__: msgspec.json.Decoder(kind) for kind in (Assign, Admit, Hold, WakeAt)
}
RETIRED = frozenset({"Measured", "SetShare", "Tune"})
"""Words of earlier versions that no decision depended on: a reader skips them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What happened and what was decided; `bytes` is what a phase that ended moved, if known.

    `failed`: the policy raised an exception instead.
    """

    event: Event
    actions: Sequence[Action] = ()
    bytes: int | None = None
    failed: bool = False
    where: str = ""
    """File and line, for messages."""


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    event: str
    bytes: int | None = None
    failed: bool = False
    actions: list[msgspec.Raw] = []


class _Action(msgspec.Struct, frozen=True, kw_only=True):
    action: str


_LINE = msgspec.json.Decoder(_Line)
_ACTION = msgspec.json.Decoder(_Action)
_encode = msgspec.json.Encoder().encode


def encode(entry: Entry) -> bytes:
    """Return the line, with its newline."""
    actions = b",".join(_tagged("action", action) for action in entry.actions)
    moved = b"" if entry.bytes is None else b',"bytes":%d' % entry.bytes
    failed = b',"failed":true' if entry.failed else b""
    return _tagged("event", entry.event)[:-1] + moved + failed + b',"actions":[' + actions + b"]}\n"


def _tagged(key: str, thing: Event | Action) -> bytes:
    return f'{{"{key}":"{type(thing).__name__}",'.encode() + _encode(thing)[1:]


def decode(text: bytes) -> Entry | None:
    """Return the entry of a line, None if its event is retired, or raise InputError."""
    try:
        line = _LINE.decode(text)
        if line.event in RETIRED:
            return None
        event = _decoder("event", line.event, EVENTS).decode(text)
        names = [_ACTION.decode(raw).action for raw in line.actions]
        actions = [
            _decoder("action", name, ACTIONS).decode(raw)
            for name, raw in zip(names, line.actions, strict=True)
            if name not in RETIRED
        ]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{_plain(error)}; is the file damaged?") from error
    if not 0 <= event.time < math.inf:
        raise InputError(f"time is {event.time:g}; it must be seconds since the record's epoch")
    return Entry(event=event, actions=tuple(actions), bytes=line.bytes, failed=line.failed)


def _decoder(
    key: str, name: str, vocabulary: Mapping[str, msgspec.json.Decoder[Any]]
) -> msgspec.json.Decoder[Any]:
    if name not in vocabulary:
        raise unknown(key, name, vocabulary)
    return vocabulary[name]


def _plain(error: Exception) -> str:
    if not isinstance(error, msgspec.DecodeError):
        return "not JSON in UTF-8"
    return " ".join(str(error).replace("`", "").replace("$.", "").split())
