"""Numbers that agents send are bounded: what they add up to is stored, and shown to everybody."""

from typing import Any

import msgspec
import pytest

from penstock.live.protocol import messages

ENDED = {"type": "PhaseEnded", "phase": 1, "bytes": 1, "seconds": 1.0, "waited": 0.0}
BEGAN = {"type": "PhaseBegan", "phase": 1}
BEGIN = {"type": "Begin", "name": "a", "pid": 1, "command": [], "user": "ann"}


@pytest.mark.security
@pytest.mark.parametrize(
    ("message", "field"),
    [
        (ENDED, "seconds"),
        (ENDED, "waited"),
        (ENDED, "idle"),
        (BEGAN, "transferring"),
        (ENDED, "bytes"),
        (ENDED, "phase"),
        (BEGAN, "phase"),
        (BEGIN, "nodes"),
        (BEGIN, "processes"),
    ],
)
@pytest.mark.parametrize("value", ["1e308", "-1", "1e999", str(2**70)])
def test_no_agent_sends_a_number_that_cannot_be_true(
    message: dict[str, Any], field: str, value: str
) -> None:
    """The fault: three phases of 1e308 s, and `status` had null where a number is required."""
    kind = messages.PhaseBegan | messages.PhaseEnded | messages.BeginJob
    assert msgspec.json.decode(msgspec.json.encode(message), type=kind)
    line = msgspec.json.encode(message | {field: msgspec.Raw(value.encode())})
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(line, type=kind)
