"""penstock man: manual pages, made from the help texts."""

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
    from penstock.cli.common.manual.roff import man_page  # noqa: PLC0415

    if out is not None:
        if verb:
            raise InputError("--out writes all pages; leave out VERB")
        names = _write(out)
        if as_json:
            emit_json({"out": str(out), "pages": names})
        else:
            click.echo(f"{len(names)} pages in {out}")
        return
    page = manual.page(*verb)
    if page is None:
        verbs = [" ".join(page.path[1:]) for page in manual.pages()]
        raise unknown("verb", " ".join(verb), verbs[1:])
    emit_json(page) if as_json else click.echo(man_page(page, _date(), _parent(page)), nl=False)


def _write(out: Path) -> list[str]:
    from penstock.cli.common import manual  # noqa: PLC0415
    from penstock.cli.common.manual.roff import man_page  # noqa: PLC0415

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
