"""The nine settings of an I/O node are the same in Python and in C++, defaults included."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.io_node_settings import DEFAULTS, SCHEDULERS, IoNodeSettings
from penstock.live.ionode import _ionode
from penstock.live.protocol import messages

NATIVE = Path(__file__).parents[3] / "native/ionode"
FIELD = re.compile(r"^ +[\w:]+ (\w+) = ([^;]+);", re.M)
INTERNAL = {"window_seconds", "io_node"}
"""Fields of the C++ struct that are no settings."""


def native_defaults() -> dict[str, Any]:
    """Return the defaults as they are written in the headers."""
    struct = re.search(
        r"^struct Settings \{\n(.*?)^\};", (NATIVE / "scheduler.hpp").read_text(), re.M | re.S
    )
    stripe = re.search(r"stripe_size = ([^;]+);", (NATIVE / "shared.hpp").read_text())
    assert struct is not None
    assert stripe is not None
    values = dict(FIELD.findall(struct[1]), stripe_size=stripe[1])
    return {name: _value(text) for name, text in values.items() if name not in INTERNAL}


def _value(text: str) -> Any:
    text = text.replace("'", "").replace("Shares::", '"').strip()
    if text.startswith('"'):
        return text.strip('"')
    number, _, shift = text.partition("<<")
    return int(number) << int(shift or 0)


def test_the_names_and_defaults_are_those_of_the_headers() -> None:
    expected = msgspec.structs.asdict(DEFAULTS)
    expected["window"] = round(expected["window"] * 1e9)
    assert native_defaults() == expected
    assert len(expected) == 9


def test_an_io_node_starts_with_the_defaults() -> None:
    node = _ionode.Node(0, 1)
    for name, value in node.settings().items():
        assert value == getattr(DEFAULTS, name), name
    assert _ionode.scheduler_names() == list(SCHEDULERS)


@pytest.mark.parametrize("name", IoNodeSettings.__struct_fields__)
def test_an_io_node_takes_each_setting(name: str) -> None:
    node = _ionode.Node(0, 1)
    node.configure({name: getattr(DEFAULTS, name)})
    with pytest.raises(ValueError, match="no setting"):
        node.configure({f"{name}_": 1})


def test_the_message_has_the_same_fields_under_the_same_names() -> None:
    message = messages.Settings(**msgspec.structs.asdict(DEFAULTS))
    fields = msgspec.json.decode(msgspec.json.encode(message))
    assert fields.pop("type") == "Settings"
    assert fields == msgspec.structs.asdict(DEFAULTS)
