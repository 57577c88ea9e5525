"""penstock man: manual pages, made from the help texts."""

import os
import re
import textwrap
from collections.abc import Iterable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock import __version__
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.common.terminal import echo
from penstock.errors import InputError, unknown
from penstock.files import reason, replacing

if TYPE_CHECKING:
    from penstock.cli.common.manual import Page

EXIT = (
    ("0", "Success."),
    ("1", "A run failed."),
    ("2", "Wrong input: one line on standard error says what is wrong, where, and what to do."),
    ("130", "Interrupted."),
)
ENVIRONMENT = (
    ("PENSTOCK_CONFIG", "The configuration file to read, unless --config is given."),
    ("PENSTOCK_SECTION__KEY", "A key of the configuration: PENSTOCK_SITE__NODES=96."),
    ("PENSTOCK_CONTROLLER", "The address of a controller on another host, HOST:PORT."),
    ("PENSTOCK_KEY_FILE", "The site key, or a user's, for a controller on another host."),
    ("PENSTOCK_DISABLE", "If 1, programs run by 'penstock run' are not managed."),
)
FILES = (
    ("penstock.toml", "The configuration, in the current directory, ~/.config/penstock or"),
    ("/etc/penstock/penstock.toml", "for all users of a host."),
)
_SIGNS = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}
_WIDTH = 78


@click.command()
@click.argument("verb", nargs=-1)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write all pages into this directory, such as a man1 of $MANPATH.",
)
@json_option
def man(*, verb: tuple[str, ...], out: Path | None, as_json: bool) -> None:
    """Print the manual page of VERB, or write all pages.

    \b
    Examples:
      penstock man simulate | man -l -                read one page
      penstock man patterns measure
      penstock man --out ~/.local/share/man/man1      install all: man penstock-simulate

    Without VERB it prints the page of penstock itself. Pages are made from the --help texts, so
    they always match this version. Their date is today's, or that of $SOURCE_DATE_EPOCH.
    """
    from penstock.cli.common import manual  # noqa: PLC0415 - it imports every verb

    if out is not None:
        if verb:
            raise InputError("--out writes all pages; leave out VERB")
        names = _write(out)
        if as_json:
            emit_json({"out": str(out), "pages": names})
        else:
            echo(f"{len(names)} pages in {out}")
        return
    page = manual.page(*verb)
    if page is None:
        verbs = [" ".join(page.path[1:]) for page in manual.pages()]
        raise unknown("verb", " ".join(verb), verbs[1:])
    emit_json(page) if as_json else echo(man_page(page, _date(), _parent(page)), nl=False)


def _write(out: Path) -> list[str]:
    from penstock.cli.common import manual  # noqa: PLC0415

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out}: {reason(error)}; choose another directory") from error
    names = []
    for page in manual.pages():
        names.append(f"{page.name}.1")
        with replacing(out / names[-1]) as partial:
            partial.write_text(man_page(page, _date(), _parent(page)), encoding="utf-8")
    return names


def _parent(page: "Page") -> tuple[str, ...]:
    return () if len(page.path) == 1 else ("-".join(page.path[:-1]),)


def _date() -> date:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.now(UTC).date()
    if not epoch.isdigit():
        raise InputError(f"SOURCE_DATE_EPOCH is {epoch!r}; give seconds since 1970")
    return datetime.fromtimestamp(int(epoch), UTC).date()


def man_page(page: "Page", day: date, others: tuple[str, ...] = ()) -> str:
    """Return the man page; `others` are further pages for SEE ALSO."""
    lines = [
        f'.TH "{page.name.upper()}" 1 "{day.isoformat()}" "penstock {__version__}" "Penstock"',
        *_section("NAME", [f"{_text(page.name)} \\- {_text(_lowered(page.summary))}"]),
        *_section("SYNOPSIS", [_bold(page.synopsis)]),
        *_section("DESCRIPTION", _description(page)),
        *_section("VERBS", _list((_bold(name), text) for name, text in page.verbs)),
        *_section("OPTIONS", _list((_bold(names), text) for names, text in page.options)),
        *_section("EXAMPLES", _examples(page)),
    ]
    if len(page.path) == 1:
        lines += _section("EXIT STATUS", _list((_bold(code), text) for code, text in EXIT))
        lines += _section("ENVIRONMENT", _list((_bold(name), text) for name, text in ENVIRONMENT))
        lines += _section("FILES", _list((_bold(name), text) for name, text in FILES))
    below = [f"{page.name}-{verb}" for verb, _ in page.verbs]
    lines += _section("SEE ALSO", _see([*below, *others]))
    return "\n".join(lines) + "\n"


def _section(title: str, body: list[str]) -> list[str]:
    return [f'.SH "{title}"', *body] if body else []


def _description(page: "Page") -> list[str]:
    lines: list[str] = []
    for paragraph in page.paragraphs:
        if lines:
            lines.append(".PP")
        if paragraph.preformatted:
            lines += [".nf", *map(_text, paragraph.text.splitlines()), ".fi"]
        else:
            lines += _wrapped(paragraph.text)
    return lines


def _examples(page: "Page") -> list[str]:
    lines: list[str] = []
    for example in page.examples:
        if example.note:
            lines += [".PP", *_wrapped(f"{example.note}:")]
        else:
            lines.append(".PP")
        lines += [".nf", ".RS 4", _text(example.command), ".RE", ".fi"]
    return lines[1:] if lines and lines[0] == ".PP" else lines


def _list(entries: Iterable[tuple[str, str]]) -> list[str]:
    return [line for term, text in entries for line in (".TP", term, *_wrapped(text))]


def _see(names: list[str]) -> list[str]:
    return [
        f".BR {_text(name)} (1){',' if i < len(names) - 1 else ''}" for i, name in enumerate(names)
    ]


def _wrapped(text: str) -> list[str]:
    """Return lines of roff, one sentence per line, as `man` needs for its spacing."""
    sentences = re.split(r"(?<=[.:?]) (?=[A-Z'])", text)
    return [
        _guarded(line)
        for sentence in sentences
        for line in textwrap.wrap(
            _escaped(sentence), _WIDTH, break_long_words=False, break_on_hyphens=False
        )
    ]


def _bold(text: str) -> str:
    return rf"\fB{_text(text)}\fR"


def _text(text: str) -> str:
    """Return text that roff prints literally."""
    return _guarded(_escaped(text))


def _escaped(text: str) -> str:
    return "".join(_SIGNS.get(sign, sign) for sign in text)


def _guarded(line: str) -> str:
    """Return a line that roff does not take for a request."""
    return rf"\&{line}" if line.startswith((".", "\\(aq")) else line


def _lowered(summary: str) -> str:
    """Return a summary for the NAME section: no capital, no full stop."""
    text = summary.rstrip(".")
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
