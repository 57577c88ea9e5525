"""Odd messages, made from valid ones: any value replaced, fields lost, repeated, nested, or cut."""

from copy import deepcopy
from random import Random
from typing import Any

import msgspec

VALUES = tuple(
    text.encode()
    for text in (
        *("null", "true", "false", "[]", "{}", '""', "0", "-1", "1", "255", "256", "-0.0", "0.5"),
        *("NaN", "Infinity", "-Infinity", "1e308", "1e-320", "1e999", "-1e308", "1.0", "+1", "01"),
        *(str(sign * 2**bits + more) for bits in (31, 32, 63, 64, 70) for sign in (1, -1)
          for more in (-1, 0)),
        *("9" * 400, "9" * 5000, "1e-" + "9" * 50, "0." + "3" * 400),
        *('"\\u0000"', '"a\\u0000b"', '"\\u001b]0;x\\u0007"', '"\\r\\n"', '"\\u202e"', '"\\ud800"'),
        *('"\\ud83d\\ude00"', '"../../x"', '"/"', '"/etc/passwd"', '"-1"', '"0"', '"8"', '"9999"'),
        *('"' + "a" * 65 + '"', '"' + "é" * 513 + '"', '"' + "x" * 5000 + '"', '"root"'),
        *('"' + "9" * 5000 + '"', '"4294967295"', '"-9223372036854775808"', '"job.1"', '"job.01"'),
        *('"job.' + "9" * 5000 + '"', '"job.\\u0661"', '"enforce"', '"' + "f" * 64 + '"'),
        *("[" * 900, "[" * 5000, "[" * 5000 + "]" * 5000, '{"a":' * 5000 + "1" + "}" * 5000),
        *("[1,2,3]", "[[1]]", "[null]", '{"0":1}', '{"a":{"b":[]}}', "[" + "0," * 3000 + "0]"),
        '"nobody"',
        "{" + ",".join(f'"{k}":1' for k in range(1100)) + "}",
    )
)  # fmt: skip
"""Values as JSON, or nearly so: at the edges of what fields take, and beyond."""
BYTES = (b"\0", b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x1b", b"\n", b"\r",
         b'"', b"\\", b"{", b"}", b"[", b",", b":", b"\\u", b" ", b"\xef\xbb\xbf")  # fmt: skip


class Odd:
    """Makes odd messages by a random number generator: the same ones for the same seed."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._trees: dict[int, Any] = {}

    def value(self) -> msgspec.Raw:
        """Return a value as JSON."""
        return msgspec.Raw(self.random.choice(VALUES))

    def line(self, message: msgspec.Struct) -> bytes:
        """Return a message as a line, whose values and text may be odd."""
        tree = self._trees.get(id(message))
        if tree is None:
            tree = self._trees[id(message)] = msgspec.to_builtins(message, str_keys=True)
        changes = self.random.choice((0, 0, 1, 1, 1, 2, 3))
        if changes:
            tree = deepcopy(tree)
        for _ in range(changes):
            self._change(tree)
        text = msgspec.json.encode(tree)
        if self.random.random() < 0.1:
            text = self._repeat_a_field(text)
        if self.random.random() < 0.1:
            text = self.broken(text)
        return text + b"\n"

    def _change(self, tree: Any) -> None:
        """Change one value, at any depth."""
        places = list(_places(tree))
        if not places:
            return
        container, key = self.random.choice(places)
        match self.random.randrange(8):
            case 0:
                del container[key]
            case 1 if isinstance(container, dict):
                container[self.random.choice(("x", "type", "", "\0", "é" * 300))] = self.value()
            case 2 if isinstance(container, list):
                container *= self.random.choice((0, 2, 500))
            case 3:
                container[key] = [container[key]]
            case _:
                container[key] = self.value()

    def _repeat_a_field(self, text: bytes) -> bytes:
        fields = text[1:-1].split(b",")
        return text[:-1] + b"," + self.random.choice(fields) + b"}"

    def broken(self, text: bytes) -> bytes:
        """Return text that is cut, or in which bytes are replaced, added or repeated."""
        at = self.random.randrange(len(text) + 1)
        match self.random.randrange(4):
            case 0:
                return text[:at]
            case 1:
                return text[:at] + self.random.choice(BYTES) + text[at:]
            case 2:
                return text[:at] + self.random.choice(BYTES) + text[at + 1 :]
        return text[:at] + text[at // 2 :]

    def segments(self, text: bytes) -> list[bytes]:
        """Return text in the parts in which it is sent."""
        if self.random.random() < 0.7:
            return [text]
        cuts = sorted(self.random.randrange(len(text) + 1) for _ in range(3))
        return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Return where there is a value, as containers and keys."""
    found: list[tuple[Any, Any]] = []
    todo = [tree]
    while todo:
        container = todo.pop()
        if isinstance(container, dict | list):
            keys = list(container) if isinstance(container, dict) else range(len(container))
            found += [(container, key) for key in keys]
            todo += [container[key] for key in keys]
    return found
