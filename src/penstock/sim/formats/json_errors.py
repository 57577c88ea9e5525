"""What is wrong with a JSON workload, in words: the place, the fault and what is wanted there."""

import re
from collections.abc import Mapping

import msgspec

from penstock.errors import InputError, unknown

WANTED: Mapping[str, str] = {
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
}
_MESSAGE = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<where>.*)`)?", re.DOTALL)


def malformed(message: str, data: bytes, skipped: int) -> InputError:
    """Return the error of a text that is not JSON, with the line that breaks off from it."""
    if "truncated" in message:
        return InputError("the JSON text ends too early: the file is cut off; write it again")
    at = re.search(r"\(byte (\d+)\)", message)
    if at is None:
        return InputError(message)
    byte = int(at[1]) + skipped
    line = data.count(b"\n", 0, byte) + 1
    word = re.match(rb"NaN|Infinity|inf|nan", data[byte : byte + 9])
    if word is not None:
        return InputError(
            f"line {line} has {word[0].decode()}, which JSON does not know; give a finite number"
        )
    what = message.removeprefix("JSON is malformed: ").split(" (byte")[0]
    return InputError(f"line {line} is not valid JSON: {what} (byte {byte}); correct it there")


def wrong(error: Exception, where: str, fields: tuple[str, ...], *, first: int = 0) -> InputError:
    """Return the error of a value that is not of its type, with the field and what it wants."""
    match = _MESSAGE.fullmatch(str(error))
    what, path = (match["what"], match["where"] or "") if match else (str(error), "")
    key = re.search(r"(unknown|missing required) field `(.*)`", what)
    if key is not None:
        prefix = f"{where}: " if where else ""
        if key[1] == "unknown":
            return InputError(f"{prefix}{unknown('key', key[2], fields)}")
        return InputError(f"{prefix}{key[2]!r} is missing; give {WANTED[key[2]]}")
    if (index := re.match(r"\[(\d+)\](?:\[(\d)\])?", path)) is not None:
        part = "" if index[2] is None else (", compute", ", io")[int(index[2])]
        where, path = f"{where}[{int(index[1]) + first}]{part}", "phases"
    field = re.split(r"[.\[]", path)[0]
    place = where if field == "phases" else ", ".join(filter(None, (where, path)))
    wanted = WANTED.get(field, WANTED[""])
    if not isinstance(error, msgspec.DecodeError):
        what = "is not readable text"
    return InputError(f"{place + ': ' if place else ''}{_plain(what)}; give {wanted}")


def _plain(message: str) -> str:
    text = message.replace("`", "").replace("Expected", "expected").replace("object", "an object")
    return " ".join(text.split())
