"""penstock policies: list the policies, explain one, or check one."""

import inspect
import sys
from typing import Any

import click

from penstock import registry
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.common.terminal import echo
from penstock.core import live_knowledge
from penstock.errors import InputError

ORIGINS = {
    "published": "published in a paper",
    "penstock": "Penstock's own",
    "other": "from files and other packages",
}


@click.command()
@click.argument("words", nargs=-1, metavar="[check] [NAME]")
@click.option(
    "--kind",
    metavar="KIND",
    help="Only this kind: sharing, allocation, placement, packing or tuning.",
)
@click.option(
    "--cpu-limit",
    metavar="SECONDS",
    type=click.IntRange(1),
    default=60,
    show_default=True,
    help="check: the processor time after which a policy that has not returned is at fault; one "
    "that sleeps, after ten times as long by the clock, and a minute at least.",
)
@json_option
def policies(*, words: tuple[str, ...], kind: str | None, cpu_limit: int, as_json: bool) -> None:
    """List the policies, explain the one called NAME (its idea, options and paper), or check it.

    \b
    Examples:
      penstock policies
      penstock policies set-10
      penstock policies random --kind placement
      penstock policies ./mine.py:Mine --json
      penstock policies check ./mine.py:Mine

    'check' runs a policy in a process of its own: the same question must have the same answer, jobs
    and view stay as they are, simulator and controller must decide alike, jobs listed in another
    order are decided alike unless it reads job.serial, it must say what it needs to know, and it
    must return. It exits with 2 and says what is wrong, or with 0. It is a test on a few workloads,
    and no proof: imports of clocks, random numbers, files and processes are warnings, and what the
    policy does only on other workloads is not seen.

    Policies of papers and Penstock's own are listed apart; 'live' says whether a live controller
    takes a policy, and can know what it needs.

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
            _check(of, names[0], cpu_limit, as_json=as_json)
            return
        entry = _entry(of, names[0])
        emit_json(entry) if as_json else _explain(entry)
        return
    kinds = {k: [_entry(k, policy) for policy in sorted(registry.table(k))] for k in listed}
    if as_json:
        emit_json([entry for entries in kinds.values() for entry in entries])
        return
    for title, entries in kinds.items():
        for origin, text in ORIGINS.items():
            if group := [entry for entry in entries if entry["origin"] == origin]:
                _show_group(f"{title} policies, {text}", group)


def _show_group(title: str, entries: list[dict[str, Any]]) -> None:
    columns = ("policy", "needs", "live", "options", "summary")
    rows = [
        (
            entry["name"],
            ", ".join(entry["needs"]),
            "yes" if entry["live"] else "no",
            _options(entry),
            entry["summary"],
        )
        for entry in entries
    ]
    emit_table(columns, rows, title=title, text=columns, drop=("options", "live"))


def _check(kind: str, name: str, cpu_limit: int, *, as_json: bool) -> None:
    from penstock.sim.evaluate.contract_process import check_within  # noqa: PLC0415 - slow

    result = check_within(kind, name, cpu_limit)
    if as_json:
        warnings, problems = result.warnings, result.problems
        emit_json({"name": name, "kind": kind, "problems": problems, "warnings": warnings})
        if problems:
            raise click.exceptions.Exit(2)
        return
    for warning in result.warnings:
        echo(f"penstock: warning: policy {name!r}: {warning}", err=True)
    if result.problems:
        raise InputError(f"policy {name!r}: {'; '.join(result.problems)}")
    echo(f"{name}: keeps the contract of {kind} policies")


def _entry(kind: str, name: str) -> dict[str, Any]:
    cls = registry.load(kind, name)
    text = _description(cls)
    # The first paragraph, without the name at its beginning.
    summary = " ".join(text.split("\n\n")[0].split()).removeprefix(f"{name}: ")
    defaults = registry.options(cls)
    needs = sorted(getattr(cls, "needs", ()))
    offline = str(getattr(cls, "offline", ""))
    return {
        "name": name,
        "kind": kind,
        "origin": registry.origin(kind, name),
        "needs": needs,
        "live": live_knowledge.runs_live(kind, needs) and not offline,
        "offline": offline,
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
    echo(entry["description"])
    echo()
    echo(f"kind     {entry['kind']}")
    echo(f"from     {ORIGINS[entry['origin']].removeprefix('from ')}")
    echo(f"needs    {', '.join(entry['needs']) or 'nothing'}")
    offline = entry["offline"] and f"no: {entry['offline']}"
    echo(f"live     {offline or live_knowledge.in_words(entry['kind'], entry['needs'])}")
    echo(f"options  {_options(entry) or 'none'}")
