"""The reference of the configuration: every key, its type, its default and what it means."""

import types
import typing
from typing import Any

import msgspec

from made.text import escaped, table
from penstock.config import Config, describe, sections
from penstock.live.protocol import messages


def pages() -> dict[str, str]:
    """Return the page of all sections."""
    lines = [
        "# Configuration, key by key",
        "Made from the types that the configuration is read into. [Configuration]"
        "(configuration.md) tells where it is read from and which place wins; "
        '`penstock config show` prints what is in force. Times and sizes may be words: `"5 min"`, '
        '`"2 GiB/s"`.',
    ]
    defaults = Config()
    for name, kind in sections().items():
        values = msgspec.to_builtins(getattr(defaults, name))
        rows = [
            (
                f"`{field.encode_name}`",
                _type(field.type),
                _default(values[field.encode_name]),
                escaped(describe(kind, field.encode_name)),
            )
            for field in msgspec.structs.fields(kind)
        ]
        lines += [
            f"## [{name}]",
            escaped(kind.__doc__ or ""),
            table(("key", "type", "default", "what it is"), rows),
        ]
    lines += ["## io-node", _io_node()]
    return {"reference/configuration-keys.md": "\n\n".join(lines) + "\n"}


def _io_node() -> str:
    rows = [
        (f"`io-node.{field.name.replace('_', '-')}`", _default(msgspec.to_builtins(field.default)))
        for field in msgspec.structs.fields(messages.Settings)
    ]
    intro = (
        "Settings of the I/O nodes are given to `penstock up --set io-node.KEY=VALUE` alone; "
        "[schedulers](../live/schedulers.md) and [shares](../live/shares.md) tell what they do."
    )
    return f"{intro}\n\n{table(('key', 'default'), rows)}"


def _default(value: Any) -> str:
    return (
        "not set"
        if value in (None, msgspec.NODEFAULT)
        else f"`{msgspec.json.encode(value).decode()}`"
    )


def _type(kind: Any) -> str:
    if typing.get_origin(kind) is typing.Annotated:
        return _type(typing.get_args(kind)[0])
    if isinstance(kind, types.UnionType):
        named = [_type(part) for part in typing.get_args(kind) if part is not types.NoneType]
        return " or ".join(dict.fromkeys(named))
    names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    if kind in names:
        return names[kind]
    origin = typing.get_origin(kind)
    if origin is typing.Literal:
        return " or ".join(f"`{value}`" for value in typing.get_args(kind))
    return {tuple: "list", list: "list", dict: "table"}[origin]
