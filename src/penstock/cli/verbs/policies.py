"""penstock policies: list the policies, or explain one."""

import inspect
import sys
from typing import Any

import click

from penstock import registry
from penstock.cli.common.output import emit_json, emit_table, json_option


@click.command()
@click.argument("name", required=False)
@click.option(
    "--kind",
    metavar="KIND",
    help="Only this kind: sharing, allocation, placement, packing or tuning.",
)
@json_option
def policies(*, name: str | None, kind: str | None, as_json: bool) -> None:
    """List the policies, or explain the one called NAME: its idea, its options, its paper.

    \b
    Examples:
      penstock policies
      penstock policies set-10
      penstock policies random --kind placement
      penstock policies ./mine.py:Mine --json

    'needs' is what a policy must know of a job: w_iter (the length of an iteration), profile (the
    class that a generator took the job from), remaining and progress (the bytes still to transfer,
    and transferred), io and work (the length of its phases and of its whole run), curve, volume and
    compute (its bandwidth by number of resources, its bytes, and its computing time).

    Set options with --set sharing.options.NAME=VALUE, or in [sharing.options] of the configuration.
    """
    listed = list(registry.POLICIES) if kind is None else [kind]
    if name is not None:
        # A name that several kinds have means the first of them, unless --kind is given.
        matches = [k for k in listed if name in registry.table(k)]
        entry = _entry(matches[0] if matches else kind or "sharing", name)
        emit_json(entry) if as_json else _explain(entry)
        return
    kinds = {k: [_entry(k, policy) for policy in sorted(registry.table(k))] for k in listed}
    if as_json:
        emit_json([entry for entries in kinds.values() for entry in entries])
        return
    columns = ("policy", "needs", "options", "summary")
    for title, entries in kinds.items():
        rows = [(e["name"], ", ".join(e["needs"]), _options(e), e["summary"]) for e in entries]
        emit_table(columns, rows, title=f"{title} policies", text=columns)


def _entry(kind: str, name: str) -> dict[str, Any]:
    cls = registry.load(kind, name)
    text = _description(cls)
    # The first paragraph, without the name at its beginning.
    summary = " ".join(text.split("\n\n")[0].split()).removeprefix(f"{name}: ")
    defaults = registry.options(cls)
    return {
        "name": name,
        "kind": kind,
        "needs": sorted(getattr(cls, "needs", ())),
        "options": {
            option: "required" if default is inspect.Parameter.empty else default
            for option, default in defaults.items()
        },
        "summary": summary,
        "description": text,
    }


def _description(cls: type[Any]) -> str:
    module = sys.modules.get(cls.__module__)
    return inspect.cleandoc((module and module.__doc__) or cls.__doc__ or "no description")


def _options(entry: dict[str, Any]) -> str:
    return ", ".join(f"{option}={default}" for option, default in entry["options"].items())


def _explain(entry: dict[str, Any]) -> None:
    click.echo(entry["description"])
    click.echo()
    click.echo(f"kind     {entry['kind']}")
    click.echo(f"needs    {', '.join(entry['needs']) or 'nothing'}")
    click.echo(f"options  {_options(entry) or 'none'}")
