"""The command line as data, from `--help`: for manual pages, and the reference on the web site.

Help texts have one form: a sentence, a block of examples, paragraphs. Blocks after a line of `\\b`
keep their line breaks. An example is a command, optionally followed by two or more spaces and a
note.
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass

import click

from penstock.cli import VERBS, penstock

NO_REWRAP = "\b"
"""Click's mark for a block that keeps its line breaks."""
_EXAMPLES = ("Examples:", "Start here:", "Then:")
_NOTE = re.compile(r"\s{2,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A command to type, and its purpose."""

    command: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """A part of the description; `preformatted` text keeps its line breaks."""

    text: str
    preformatted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The help of one verb."""

    path: tuple[str, ...]
    summary: str
    synopsis: str
    paragraphs: tuple[Paragraph, ...]
    examples: tuple[Example, ...]
    options: tuple[tuple[str, str], ...]
    verbs: tuple[tuple[str, str], ...]

    @property
    def command(self) -> str:
        """The command to type: `penstock patterns show`."""
        return " ".join(self.path)

    @property
    def name(self) -> str:
        """The page's name: `penstock-patterns-show`."""
        return "-".join(self.path)


def pages() -> Iterator[Page]:
    """Yield the page of the command itself, then those of all verbs and their sub-verbs."""
    yield from _below(penstock, click.Context(penstock, info_name="penstock"), ("penstock",))


def page(*verbs: str) -> Page | None:
    """Return the page of a verb, or None if the verb does not exist."""
    return next((page for page in pages() if page.path[1:] == verbs), None)


def _below(command: click.Command, ctx: click.Context, path: tuple[str, ...]) -> Iterator[Page]:
    below = []
    if isinstance(command, click.Group):
        verbs = ((name, command.get_command(ctx, name)) for name in command.list_commands(ctx))
        below = [(name, verb) for name, verb in verbs if verb is not None and not verb.hidden]
    paragraphs, examples = _read(command.help or "")
    yield Page(
        path=path,
        summary=VERBS[path[1]][1] if len(path) == 2 else _sentence(command),
        synopsis=" ".join((*path, *command.collect_usage_pieces(ctx))),
        paragraphs=tuple(paragraphs),
        examples=tuple(examples),
        options=tuple(_options(command, ctx)),
        verbs=tuple((name, _summary(name, verb, path)) for name, verb in below),
    )
    for name, verb in below:
        settings = verb.context_settings
        inner = click.Context(verb, info_name=name, parent=ctx, **settings)
        yield from _below(verb, inner, (*path, name))


def _summary(name: str, verb: click.Command, path: tuple[str, ...]) -> str:
    return VERBS[name][1] if len(path) == 1 else _sentence(verb)


def _sentence(command: click.Command) -> str:
    """Return the one-line summary of a command: its short help, or its first sentence."""
    if command.short_help:
        return command.short_help
    first = _read(command.help or "")[0][0].text
    return first.split(". ")[0].split(": ")[0].rstrip(".:") + "."


def _options(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, str]]:
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None and isinstance(parameter, click.Option):
            yield record[0], " ".join(record[1].split())


def _read(text: str) -> tuple[list[Paragraph], list[Example]]:
    paragraphs: list[Paragraph] = []
    examples: list[Example] = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        preformatted = block.startswith(NO_REWRAP)
        lines = block.removeprefix(NO_REWRAP).strip("\n").splitlines()
        if preformatted and lines[0] in _EXAMPLES:
            examples += _examples(lines)
        elif preformatted:
            paragraphs.append(Paragraph(text="\n".join(lines), preformatted=True))
        elif lines:
            paragraphs.append(Paragraph(text=" ".join(line.strip() for line in lines)))
    return paragraphs, examples


def _examples(lines: list[str]) -> Iterator[Example]:
    joined = "\n".join(line.strip() for line in lines).replace("\\\n", "")
    for line in joined.splitlines():
        if line not in _EXAMPLES:
            command, *note = _NOTE.split(line, maxsplit=1)
            yield Example(command=command, note=" ".join(note))
