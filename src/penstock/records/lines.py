"""One line of a record: an event, with the actions that it led to, both by name.

{"event":"PhaseBegan","time":3.5,"job":"a","resources":[0],"io":null,
 "actions":[{"action":"Admit","job":"a","resource":0,"weight":1.0,"max_share":1.0}]}
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
    Measured,
    NodeDown,
    NodeUp,
    PhaseBegan,
    PhaseEnded,
    SetShare,
    Tune,
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
        Measured,
        NodeUp,
        NodeDown,
        Woke,
    )
}
ACTIONS: Mapping[str, msgspec.json.Decoder[Any]] = {
    kind.__name__: msgspec.json.Decoder(kind)
    for kind in (Assign, Admit, Hold, SetShare, Tune, WakeAt)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What happened, and what was decided; `bytes` is what a phase that ended moved, if known.

    Where the policy raised something instead, it `failed`.
    """

    event: Event
    actions: Sequence[Action] = ()
    bytes: int | None = None
    failed: bool = False
    where: str = ""
    """The file and the line, for people."""


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
    """Return the line, its end included."""
    event = entry.event
    if isinstance(event, Measured):
        # JSON knows no NaN, and nothing is decided by these.
        finite = {name: value for name, value in event.metrics.items() if math.isfinite(value)}
        event = replace(event, metrics=finite)
    actions = b",".join(_named("action", action) for action in entry.actions)
    moved = b"" if entry.bytes is None else b',"bytes":%d' % entry.bytes
    failed = b',"failed":true' if entry.failed else b""
    return _named("event", event)[:-1] + moved + failed + b',"actions":[' + actions + b"]}\n"


def _named(key: str, thing: Event | Action) -> bytes:
    return f'{{"{key}":"{type(thing).__name__}",'.encode() + _encode(thing)[1:]


def decode(text: bytes) -> Entry:
    """Return what a line says, or raise InputError."""
    try:
        line = _LINE.decode(text)
        event = _decoder("event", line.event, EVENTS).decode(text)
        actions = [
            _decoder("action", _ACTION.decode(raw).action, ACTIONS).decode(raw)
            for raw in line.actions
        ]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{_plain(error)}; is the file damaged?") from error
    if not 0 <= event.time < math.inf:
        raise InputError(f"time is {event.time:g}; it is seconds since the record's epoch")
    return Entry(event=event, actions=tuple(actions), bytes=line.bytes, failed=line.failed)


def _decoder(
    key: str, name: str, known: Mapping[str, msgspec.json.Decoder[Any]]
) -> msgspec.json.Decoder[Any]:
    if name not in known:
        raise unknown(key, name, known)
    return known[name]


def _plain(error: Exception) -> str:
    if not isinstance(error, msgspec.DecodeError):
        return "not a JSON text in UTF-8"
    return " ".join(str(error).replace("`", "").replace("$.", "").split())
