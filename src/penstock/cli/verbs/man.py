"""penstock man: the manual, made from what the verbs say of themselves."""

import os
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.common.output import emit_json, json_option
from penstock.errors import InputError, unknown
from penstock.files import reason, replacing

if TYPE_CHECKING:
    from penstock.cli.common.manual import Page


@click.command(short_help="The manual pages of penstock and its verbs.")
@click.argument("verb", nargs=-1)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write all pages into this directory, a man1 of $MANPATH, say.",
)
@json_option
def man(*, verb: tuple[str, ...], out: Path | None, as_json: bool) -> None:
    """Print the manual page of VERB, or write all of them.

    \b
    Examples:
      penstock man simulate | man -l -                to read one
      penstock man patterns measure
      penstock man --out ~/.local/share/man/man1      to have them all: man penstock-simulate

    Without VERB it is the page of penstock itself. Pages are made when asked for, of what --help
    says, so that they are always those of this version. Their date is today's, or that of
    $SOURCE_DATE_EPOCH.
    """
    from penstock.cli.common import manual  # noqa: PLC0415 - it imports every verb
    from penstock.cli.common.manual.roff import man_page  # noqa: PLC0415

    if out is not None:
        if verb:
            raise InputError("--out writes all pages; leave the verb out")
        written = _write(out)
        if as_json:
            emit_json({"out": str(out), "pages": written})
        else:
            click.echo(f"{len(written)} pages in {out}")
        return
    found = manual.page(*verb)
    if found is None:
        known = [" ".join(page.path[1:]) for page in manual.pages()]
        raise unknown("verb", " ".join(verb), known[1:])
    emit_json(found) if as_json else click.echo(man_page(found, _day(), _others(found)), nl=False)


def _write(out: Path) -> list[str]:
    from penstock.cli.common import manual  # noqa: PLC0415
    from penstock.cli.common.manual.roff import man_page  # noqa: PLC0415

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out} cannot be made ({reason(error)}); choose another") from error
    names = []
    for page in manual.pages():
        names.append(f"{page.name}.1")
        with replacing(out / names[-1]) as partial:
            partial.write_text(man_page(page, _day(), _others(page)), encoding="utf-8")
    return names


def _others(page: "Page") -> tuple[str, ...]:
    return () if len(page.path) == 1 else ("-".join(page.path[:-1]),)


def _day() -> date:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.now(UTC).date()
    if not epoch.isdigit():
        raise InputError(f"SOURCE_DATE_EPOCH is {epoch!r}; give seconds since 1970")
    return datetime.fromtimestamp(int(epoch), UTC).date()
