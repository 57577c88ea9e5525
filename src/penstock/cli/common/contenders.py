"""What a comparison compares: sharing policies, allocators and placers, or packers."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from penstock import registry
from penstock.campaign.policy_file import policy_files
from penstock.cli.common import executor_options
from penstock.cli.common.options import (
    METRICS,
    PATH,
    RESOURCES,
    Configuration,
    option,
    policy_names,
)
from penstock.cli.common.output import json_text
from penstock.cli.common.workload_files import as_live, baseline_notes, knowledge
from penstock.config import Loaded
from penstock.config.campaign import LOCAL
from penstock.errors import InputError
from penstock.files import make_directory, replacing
from penstock.progress import progress
from penstock.sim.evaluate import divisions, pack_runs, policy_runs
from penstock.sim.evaluate.comparison import Comparison, Entrant, Task, journal
from penstock.sim.evaluate.gains import Contest, Metrics

SHARING = Metrics(primary="utilization", higher_is_better=policy_runs.HIGHER_IS_BETTER)
UNMANAGED = "fair-share"
FIFO = "exclusive-fcfs"
"""The sharing policy under which packs are compared, as in paper packs."""

configuration = Configuration(
    {"--on": "campaign.on", **METRICS, **RESOURCES},
    policies=("allocation", "placement"),
    lists=("allocation", "placement"),
)
"""The configuration of a verb that compares."""
out = option(
    "--out",
    metavar="DIR",
    type=PATH,
    help="Keep each simulation's metrics here, and continue from those already there.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contenders:
    """The policies of a comparison, and how they are measured."""

    kind: str
    metrics: Metrics
    names: Sequence[str]
    needs: Mapping[str, frozenset[str]]
    task: Task
    settings: Mapping[str, Any]
    explicit: bool
    """The user named them: what one of them lacks is an error, not a reason to skip it."""
    notes: Sequence[str] = ()
    """What a reader of the figures must know."""
    if_equal: str = ""
    """Advice where none of them differ."""

    def contest(self, files: Sequence[Mapping[str, Any]]) -> Contest:
        """Return what the policies that ran on all workloads gain."""
        common = [name for name in self.names if all(name in f["policies"] for f in files)]
        if not common:
            raise InputError("no policy can run on all files; choose with --policies")
        return Contest(
            [file["policies"] for file in files],
            common,
            kind=self.kind,
            metrics=self.metrics,
            base=UNMANAGED if UNMANAGED in common and self.kind == "sharing" else common[0],
            needs=self.needs,
            if_equal=self.if_equal,
        )


def choose(
    loaded: Loaded,
    policies: str | None,
    *,
    several: Mapping[str, Sequence[str]],
    packing: str | None = None,
) -> Contenders:
    """Return what is to be compared; `several` has the allocators and placers of lists."""
    if several and packing is not None:
        raise InputError(
            "--packing is compared alone; leave out lists of --allocation, --placement"
        )
    if packing is not None:
        return _packers(loaded, policy_names("--packing", packing), policies)
    if several:
        if policies is not None:
            raise InputError(
                "a list of --allocation or --placement is compared with even sharing, as in paper "
                "io-resources; leave out --policies, or give one allocator"
            )
        return _divisions(loaded, several)
    return _sharing(loaded, policies)


def _sharing(loaded: Loaded, names: str | None) -> Contenders:
    config = loaded.config
    policies = policy_runs.select(loaded, names)
    shared = policy_files((config.allocation.policy, config.placement.policy))
    own = policy_files(policies)
    files, remote = own, _remote(loaded)
    if remote:
        full = {name: file.name for name, file in shared.items()}
        allocation, placement = (
            msgspec.structs.replace(section, policy=full.get(section.policy, section.policy))
            for section in (config.allocation, config.placement)
        )
        config = msgspec.structs.replace(config, allocation=allocation, placement=placement)
        files = {**own, **shared}
    task = policy_runs.Task(
        site=config.site.site(),
        knowledge=knowledge(loaded),
        window=config.simulation.seconds(),
        as_live=as_live(loaded),
        arbiter=config.arbiter,
        options={config.sharing.policy: config.sharing.options},
        files=files if remote else {},
    )
    return Contenders(
        kind="sharing",
        metrics=SHARING,
        names=list(policies),
        needs={name: frozenset(policy.needs) for name, policy in policies.items()},
        task=task,
        settings={
            "site": loaded.config.site,
            "allocation": loaded.config.allocation,
            "placement": loaded.config.placement,
            "simulation": loaded.config.simulation,
            "live": loaded.config.live if loaded.config.simulation.as_live else None,
            "files": {**own, **shared},
            "shared": list(shared),
        },
        explicit=names is not None,
        notes=[*baseline_notes(loaded), *_unsaid_needs(own, config.sharing)],
    )


def _unsaid_needs(files: Iterable[str], configured: Any) -> list[str]:
    """Say which sharing policies of the user's files read more than their needs say."""
    if not files:
        return []
    from penstock.sim.evaluate import contract  # noqa: PLC0415 - only for policies in files

    notes = []
    for name in files:
        options = configured.options if name == configured.policy else None
        problems = contract.unsaid_needs(name, options)
        if problems:
            notes.append(
                f"what {name} needs, and whether it can run live, is not as shown: "
                f"{'; '.join(problems)} (penstock policies check {name})"
            )
    return notes


def _unchecked(kind: str, files: Iterable[str]) -> list[str]:
    return [
        f"what {name} needs is what its file says, not checked: penstock policies check {name} "
        f"--kind {kind}"
        for name in files
    ]


def _divisions(loaded: Loaded, several: Mapping[str, Sequence[str]]) -> Contenders:
    config = loaded.config
    allocators = several.get("allocation", (config.allocation.policy,))
    placers = several.get("placement", (config.placement.policy,))
    for name in placers:
        if name != config.placement.policy:
            registry.load("placement", name)
    files = policy_files((*allocators, *placers))
    remote = _remote(loaded)
    full = {name: file.name for name, file in files.items()} if remote else {}
    pairs = {}
    for a in allocators:
        for p in placers:
            name = " + ".join(
                policy for kind, policy in (("allocation", a), ("placement", p)) if kind in several
            )
            pairs[name] = divisions.Division(
                allocation=_named(config.allocation, full.get(a, a), a),
                placement=_named(config.placement, full.get(p, p), p),
            )
    return Contenders(
        kind="allocation",
        metrics=divisions.METRICS,
        names=list(pairs),
        needs={name: pair.needs for name, pair in pairs.items()},
        task=divisions.DivisionTask(
            site=config.site.site(),
            knowledge=knowledge(loaded),
            divisions=pairs,
            files=files if remote else {},
        ),
        settings={
            "kind": "allocation",
            "site": config.site,
            "simulation": config.simulation,
            "given": {name: (p.allocation, p.placement) for name, p in pairs.items()},
            "files": files,
            "shared": list(files),
        },
        explicit=True,
        notes=[
            *_unchecked("allocation", policy_files(allocators)),
            *_unchecked("placement", policy_files(placers)),
        ],
        if_equal="the site has one resource, which all jobs get: set site.resources"
        if config.site.resources == 1
        else "",
    )


def _packers(loaded: Loaded, names: Sequence[str], policies: str | None) -> Contenders:
    config = loaded.config
    sharing = FIFO if policies is None else policies
    if "," in sharing:
        raise InputError(
            f"--policies {sharing!r}: packings are compared under one sharing policy; give one name"
        )
    registry.sharing(sharing)
    own = policy_files(names)
    files = {**own, **policy_files((sharing,))}
    remote = _remote(loaded)
    full = {name: file.name for name, file in files.items()} if remote else {}
    sections = {name: _named(config.packing, full.get(name, name), name) for name in names}
    return Contenders(
        kind="packing",
        metrics=pack_runs.METRICS,
        names=list(names),
        needs={
            name: frozenset(getattr(section.packer(), "needs", ()))
            for name, section in sections.items()
        },
        task=pack_runs.PackingTask(
            site=config.site.site(),
            sharing=full.get(sharing, sharing),
            packers=sections,
            files=files if remote else {},
        ),
        settings={
            "kind": "packing",
            "site": config.site,
            "sharing": sharing,
            "files": files,
            "shared": list(policy_files((sharing,))),
        },
        explicit=True,
        notes=_unchecked("packing", own),
    )


def _named(section: Any, policy: str, name: str) -> Any:
    """Return a section with another policy; its options are of the policy that it names."""
    options = section.options if section.policy == name else {}
    return msgspec.structs.replace(section, policy=policy, options=options)


def _remote(loaded: Loaded) -> bool:
    """Return True if workers run elsewhere, where policy files are known by their full names."""
    return loaded.config.campaign.on != LOCAL


def run(
    contenders: Contenders,
    entrants: Iterable[Entrant],
    count: int,
    *,
    loaded: Loaded,
    jobs: int | None,
    out: Path | None,
) -> Comparison:
    """Run `count` workloads under all policies, and keep what is finished in `out`."""
    if out is not None or _remote(loaded):
        for file in contenders.settings["files"].values():
            file.check_alone()
    with executor_options.executor(loaded, jobs) as pool, ExitStack() as stack:
        if out is not None:
            make_directory(out)
        total = count * len(contenders.names)
        comparison = Comparison(
            task=contenders.task,
            pool=pool,
            settings=contenders.settings,
            advance=stack.enter_context(progress("simulating", total)).advance,
            journal=None if out is None else stack.enter_context(journal(out)),
        )
        comparison.run(entrants, contenders.names, keep_all=contenders.explicit)
    return comparison


def write_results(out: Path, comparison: Comparison, result: Mapping[str, Any]) -> None:
    """Write the rows and the result of a comparison into its directory."""
    from penstock.report.tables import rows_csv  # noqa: PLC0415 - it brings rich

    texts = {"results.csv": rows_csv(comparison.rows), "comparison.json": json_text(result)}
    for name, text in texts.items():
        with replacing(out / name) as partial:
            partial.write_text(text, encoding="utf-8")
