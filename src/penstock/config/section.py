"""A section of the configuration: a struct whose fields are keys, each with a description.

The description says what to give, as a noun phrase ("the number of compute nodes"). It is printed
by `config show`, in the documentation, in `--help` of the flags that set the key, and in the error
for a wrong value.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta

from penstock.errors import InputError, error_prefix

Options = Annotated[dict[str, Any], Meta(description="a table of the policy's options")]


class Section(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """Base of the sections."""

    def check(self) -> None:
        """Raise InputError for values that have the right type and are impossible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A key of a section."""

    key: str
    attribute: str
    type: Any
    default: Any
    description: str
    extra: Mapping[str, Any]

    @property
    def is_integer(self) -> bool:
        """Whether the value is a whole number, written without a unit."""
        return get_args(self.type)[0] is int

    @property
    def choices(self) -> list[str]:
        """The words of which the value is one; empty: it is no such word."""
        kind = get_args(self.type)[0]
        literals = (part for part in (kind, *get_args(kind)) if get_origin(part) is Literal)
        return [word for literal in literals for word in get_args(literal)]

    @property
    def is_table(self) -> bool:
        """Whether the value is a table, whose entries can be set one by one."""
        return get_origin(get_args(self.type)[0]) is dict

    @property
    def entry(self) -> str:
        """What to give for one entry of a table."""
        kind = get_args(get_args(self.type)[0])[1]
        if get_origin(kind) is Literal:
            return f"one of {', '.join(get_args(kind))}"
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return "a table: " + ", ".join(
                f"{each.key} ({each.description})" for each in fields(kind)
            )
        return f"a {get_origin(kind).__name__}"

    def read(self, value: Any) -> Any:
        """Return a value converted to the key's type; ValueError if that is impossible."""
        parse = self.extra.get("parse")
        return msgspec.convert(value if parse is None else parse(value), self.type)


def fields(section: type[msgspec.Struct]) -> Iterator[Field]:
    """Yield the keys of a section."""
    for field in msgspec.structs.fields(section):
        (meta,) = field.type.__metadata__
        yield Field(
            key=field.name.replace("_", "-"),
            attribute=field.name,
            type=field.type,
            default=_default(field),
            description=meta.description,
            extra=meta.extra or {},
        )


def _default(field: Any) -> Any:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return None if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def values(section: msgspec.Struct) -> dict[str, Any]:
    """Return a section's values by key."""
    return {field.key: getattr(section, field.attribute) for field in fields(type(section))}


def quantity(
    key: str,
    value: float | str,
    parse: Callable[[float | str], float],
    limits: tuple[float, float] = (0.0, math.inf),
    expected: str = "more",
) -> float:
    """Return the quantity that a key names in words; errors name the key."""
    with error_prefix(key):
        number = parse(value)
    if not limits[0] <= number <= limits[1]:
        raise InputError(f"{key} is {value}; give {expected}")
    return number
