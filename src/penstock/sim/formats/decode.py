"""Typed decoding of JSON files of jobs: every fault becomes one InputError.

The error says where the fault is (line, job, field), what it is, and what is expected there. Used
for workload files, jobs files and files of measured patterns.
"""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from penstock import units
from penstock.errors import InputError, error_prefix, unknown
from penstock.model import Curve

T = TypeVar("T")
Points = dict[str, float]
"""A bandwidth curve in a file: number of resources to bandwidth, {"0": 200, "1": 77.6}."""

EXPECTED: Mapping[str, str] = {
    "": 'an object {"horizon": seconds, "jobs": [...]}',
    "horizon": "seconds, or words such as '6 h'",
    "jobs": 'a list of jobs {"id", "release", "nodes", "phases"}',
    "id": "a string or a whole number",
    "release": "seconds, or words such as '30 min'",
    "nodes": "a whole number",
    "max_share": "a number above 0, at most 1",
    "resources": "a list of whole numbers, each from 0 to below site.resources",
    "pack": "the name of a pack",
    "after": "the name of a pack",
    "user": "a string",
    "executable": "a string",
    "processes": "a whole number",
    "hints": "an object of numbers and strings",
    "volume": "a number, in the curve's unit",
    "compute": "seconds, or words such as '2 h'",
    "w_iter": "seconds, or words such as '5 min'",
    "curve": 'an object of number of resources to bandwidth, {"1": 77.6, "2": 120}',
    "write": 'an object {"cores": 16, "burst": "100 MB"}',
    "machine": "a name that 'penstock machines' lists, or a file NAME.toml",
    "model": "the name of a file",
    "phases": "[compute, io] pairs, in seconds or words ('5 min', '12 GiB')",
    "generator": "what 'penstock generate' wrote, or leave it out",
    "patterns": 'an object of lists of patterns {"operation", "layout", "spatiality", ...}',
}
ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for a text that is not valid."""
_MESSAGE = re.compile(r"(?P<fault>.*?)(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)


def decode(data: bytes, kind: type[T]) -> T:
    """Decode a whole file."""
    # Some editors begin a UTF-8 file with a byte order mark.
    text = memoryview(data)[3 if data.startswith(b"\xef\xbb\xbf") else 0 :]
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise field_error(error, "", kind) from error
    except msgspec.DecodeError as error:
        raise _syntax_error(str(error), data, len(data) - len(text)) from error
    except UnicodeDecodeError as error:
        raise InputError("not text in UTF-8; give JSON in UTF-8") from error
    except RecursionError as error:
        raise InputError("lists or objects are nested too deeply to be a workload") from error


def _syntax_error(message: str, data: bytes, skipped: int) -> InputError:
    """Return the error for a text that is not JSON, with the line of the fault."""
    if "truncated" in message:
        return InputError("the JSON text ends too early: the file is cut off; write it again")
    position = re.search(r"\(byte (\d+)\)", message)
    if position is None:
        return InputError(message)
    byte = int(position[1]) + skipped
    line = data.count(b"\n", 0, byte) + 1
    word = re.match(rb"NaN|Infinity|inf|nan", data[byte : byte + 9])
    if word is not None:
        return InputError(
            f"line {line} has {word[0].decode()}, which JSON does not know; give a finite number"
        )
    fault = message.removeprefix("JSON is malformed: ").split(" (byte")[0]
    return InputError(f"line {line} is not valid JSON: {fault} (byte {byte}); correct it there")


def field_error(error: Exception, where: str, kind: Any = None, *, first: int = 0) -> InputError:
    """Return the error for a value of a wrong type, with its field and what is expected there.

    `kind` is the type that was decoded, whose fields are suggested for an unknown key; `first` is
    the number of phases before the decoded piece.
    """
    match = _MESSAGE.fullmatch(str(error))
    fault, path = (match["fault"], match["path"] or "") if match else (str(error), "")
    if (index := re.match(r"\[(\d+)\](?:\[(\d)\])?", path)) is not None:
        part = "" if index[2] is None else (", compute", ", io")[int(index[2])]
        where, path = f"{where}[{int(index[1]) + first}]{part}", "phases"
    names = [name for name in re.findall(r"\w+", path) if name in EXPECTED]
    place = where if path == "phases" else ", ".join(filter(None, (where, path)))
    prefix = f"{place}: " if place else ""
    expected = EXPECTED[names[-1] if names else ""]
    if (key := re.search(r"(unknown|missing required) field `(.*)`", fault)) is not None:
        if key[1] == "unknown" and not path:
            return InputError(f"{prefix}{unknown('key', key[2], kind.__struct_fields__)}")
        text = f"unknown key {key[2]!r}" if key[1] == "unknown" else f"{key[2]!r} is missing"
        expected = EXPECTED.get(key[2], expected)
    elif not isinstance(error, msgspec.DecodeError):
        text = "is not readable text"
    else:
        fault = " ".join(fault.replace("`", "").split())
        text = fault.replace("Expected", "expected").replace("object", "an object")
    return InputError(f"{prefix}{text}; give {expected}")


def seconds(value: float | str, where: str) -> float:
    """Return a duration in seconds, given as a number or in words."""
    if isinstance(value, float):
        return value
    with error_prefix(where):
        return units.seconds(value)


def parse_curve(points: Mapping[str, float], where: str) -> Curve:
    """Return the curve of a file's points; an error begins with `where`."""
    counts = parse_counts(points, where)
    with error_prefix(where):
        return Curve.of(counts)


def parse_counts(points: Mapping[str, float], where: str) -> dict[int, float]:
    """Return a file's points by number of resources; an error begins with `where`."""
    counts: dict[int, float] = {}
    for text, bandwidth in points.items():
        if not text.isascii() or not text.isdigit():
            raise InputError(
                f"{where}: {text!r} is not a number of resources; give 0 (direct access), 1, 2, ..."
            )
        if int(text) in counts:
            raise InputError(f"{where}: the count {int(text)} is given twice; give it once")
        counts[int(text)] = bandwidth
    return counts


def curve_points(curve: Curve) -> Points:
    """Return a curve as a file holds it."""
    return {str(n): b for n, b in zip(curve.counts, curve.bandwidths, strict=True)}
