"""A section of the configuration: a struct whose fields are keys, each with a description.

The description says what to give, as a noun phrase ("the number of compute nodes"). It is printed
by `config show`, in the documentation, in `--help` of the flags that set the key, and in the error
for a wrong value.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args

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
            default=field.default
            if field.default is not msgspec.NODEFAULT
            else field.default_factory(),
            description=meta.description,
            extra=meta.extra or {},
        )


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
