"""penstock policies: list the policies, explain one, or check one."""

import inspect
import sys
from typing import Any

import click

from penstock import registry
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.errors import InputError


@click.command()
@click.argument("words", nargs=-1, metavar="[check] [NAME]")
@click.option(
    "--kind",
    metavar="KIND",
    help="Only this kind: sharing, allocation, placement, packing or tuning.",
)
@json_option
def policies(*, words: tuple[str, ...], kind: str | None, as_json: bool) -> None:
    """List the policies, explain the one called NAME (its idea, options and paper), or check it.

    \b
    Examples:
      penstock policies
      penstock policies set-10
      penstock policies random --kind placement
      penstock policies ./mine.py:Mine --json
      penstock policies check ./mine.py:Mine

    'check' runs a policy: the same question must have the same answer, simulator and controller
    must decide alike, and it must say what it needs to know. It exits with 2 and says what is
    wrong, or with 0.

    'needs' is what a policy must know of a job: w_iter (the length of an iteration), profile (the
    class that a generator took the job from), remaining and progress (the bytes still to transfer,
    and transferred), io and work (the length of its phases and of its whole run), curve, volume and
    compute (its bandwidth by number of resources, its bytes, and its computing time).

    Set options with --set sharing.options.NAME=VALUE, or in [sharing.options] of the configuration.
    """
    listed = list(registry.POLICIES) if kind is None else [kind]
    to_check = words[:1] == ("check",)
    names = words[to_check:]
    if len(names) > 1 or (to_check and not names):
        raise click.UsageError("give the name of one policy, or FILE.py:CLASS")
    if names:
        # A name that several kinds have means the first of them, unless --kind is given.
        matches = [k for k in listed if names[0] in registry.table(k)]
        of = matches[0] if matches else kind or "sharing"
        if to_check:
            _check(of, names[0], as_json=as_json)
            return
        entry = _entry(of, names[0])
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


def _check(kind: str, name: str, *, as_json: bool) -> None:
    from penstock.sim.evaluate import contract  # noqa: PLC0415 - loads the engine

    problems = contract.check(kind, name)
    if as_json:
        emit_json({"name": name, "kind": kind, "problems": problems})
    elif not problems:
        click.echo(f"{name}: a {kind} policy that keeps the contract")
    if problems and not as_json:
        raise InputError(f"policy {name!r}: {'; '.join(problems)}")
    if problems:
        raise click.exceptions.Exit(2)


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
