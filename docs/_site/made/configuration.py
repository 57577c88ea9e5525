"""The reference of the configuration: every key, its type, its default and what it means."""

import types
import typing
from typing import Any

import msgspec

from made.text import escaped, table
from penstock import config
from penstock.config import Config, section_types
from penstock.config.section import fields


def pages() -> dict[str, str]:
    """Return the page of all sections."""
    lines = [
        "# Configuration, key by key",
        "Made from the types of the configuration. [Configuration]"
        "(configuration.md) says where it is read from and which source wins; "
        "`penstock config show` prints the effective values. Times and sizes may have units: "
        '`"5 min"`, `"2 GiB/s"`.',
    ]
    defaults = Config()
    for name, kind in section_types().items():
        values = config.values(getattr(defaults, name.replace("-", "_")))
        rows = [
            (
                f"`{field.key}`",
                _type(field.type),
                _default(values[field.key]),
                escaped(field.description),
            )
            for field in fields(kind)
        ]
        lines += [
            f"## [{name}]",
            escaped(kind.__doc__ or ""),
            table(("key", "type", "default", "what it is"), rows),
        ]
    return {"reference/configuration-keys.md": "\n\n".join(lines) + "\n"}


def _default(value: Any) -> str:
    return (
        "not set"
        if value in (None, msgspec.NODEFAULT)
        else f"`{msgspec.json.encode(value).decode()}`"
    )


def _type(kind: Any) -> str:
    if typing.get_origin(kind) is typing.Annotated:
        return _type(typing.get_args(kind)[0])
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        names_of_types = [
            _type(part) for part in typing.get_args(kind) if part is not types.NoneType
        ]
        return " or ".join(dict.fromkeys(names_of_types))
    names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    if kind in names:
        return names[kind]
    origin = typing.get_origin(kind)
    if origin is typing.Literal:
        return " or ".join(f"`{value}`" for value in typing.get_args(kind))
    return {tuple: "list", list: "list", dict: "table"}[origin]
