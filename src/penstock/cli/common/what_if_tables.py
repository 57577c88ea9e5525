"""The result of a what-if for people: the model check first, then what exceeds its error."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from penstock import units
from penstock.cli.common.comparison_table import COLUMNS
from penstock.cli.common.output import emit_table
from penstock.cli.common.terminal import echo
from penstock.sim.evaluate.policy_runs import HIGHER_IS_BETTER
from penstock.sim.evaluate.what_ran import SOURCES

MOST_POLICIES = 3
"""The number of policies, the best ones, whose jobs are named; --json has all."""
WITHIN = "within error"
NOT_JUDGED = "not judged"
BAR = "a gain must exceed"
CUTS: Mapping[str, tuple[str, str]] = {
    "jobs_before": ("job", "began before the record, counted from then"),
    "jobs_after": ("job", "still ran when the record ended, counted until then"),
    "jobs_idle": ("job", "did no work in the record, left out"),
    "jobs_cut": ("job", "left out: all its I/O was cut off"),
    "jobs_moved": ("job", "used several sets of resources, counted with the most used set"),
    "jobs_without_io": ("job", "had no I/O phase, counted as computing"),
    "jobs_without_curve": (
        "job",
        "without a known curve at the number of I/O nodes that it had, or at another: the I/O "
        "takes as long as recorded on any number",
    ),
    "phases": ("phase", "left out: the record has only a part"),
    "phases_direct": ("phase", "did direct I/O, counted as computing"),
    "phases_unmeasured": ("phase", "left out, recorded and simulated: cut off"),
    "phases_too_fast": ("phase", "ran faster than the controller's estimate, counted as it ran"),
    "phases_short": ("phase", "too short to measure a bandwidth, counted as long as recorded"),
}


def cuts(counts: Mapping[str, int]) -> list[str]:
    """Return in words what of the record could not be used as it is."""
    return [
        f"{units.show_count(counts[key], noun)} {text}"
        for key, (noun, text) in CUTS.items()
        if counts[key]
    ]


def show(result: Mapping[str, Any], *, in_window: bool = False) -> None:
    """Print a result of `penstock what-if`; `in_window`: its metrics are of a part of the run."""
    whole = "of the whole run, " if in_window else ""
    _show_check(result, whole)
    _show_policies(result)
    echo(result["verdict"])
    if not result["record"]["missing"]["matters"]:
        _show_jobs(result, whole)
    if "packing" in result:
        _show_packing(result["packing"])
    _show_decisions(result)
    for entry in result["skipped"]:
        echo(f"skipped {entry['policy']}: {entry['reason']}")
    heading = SOURCES.get(result["record"]["source"])
    for note in result["record"]["notes"]:
        if note != heading:
            echo(f"note: {note}")


def _show_check(result: Mapping[str, Any], whole: str) -> None:
    about, checks = result["record"], result["model_check"]
    mode = "" if about["mode"] is None else f" (mode {about['mode']})"
    errors = (f"{_plain(m)} {_percent(checks[m]['error'])}" for m in COLUMNS)
    echo(f"model check: {result['ran']} ran{mode}; simulated: {', '.join(errors)}")
    if about["source"] in SOURCES:
        echo(SOURCES[about["source"]])
    rows = [
        ("recorded", *(_number(checks[m]["recorded"]) for m in COLUMNS)),
        (f"{result['ran']}, simulated", *(_number(checks[m]["simulated"]) for m in COLUMNS)),
        ("model error", *(_percent(checks[m]["error"]) for m in COLUMNS)),
        (BAR, *(_percent(checks[m]["bar"]).lstrip("+") for m in COLUMNS)),
    ]
    name = about["files"][0] if len(about["files"]) == 1 else f"run {about['run']}"
    title = (
        f"{name}: {units.show_count(about['jobs'], 'job')}, "
        f"{units.show_count(about['iterations'], 'iteration')}"
    )
    echo(f"{title}; {whole}run times are off by {100 * result['job_error']:.2f}% per job")
    emit_table(("", *COLUMNS.values()), rows)
    if by_run_times := [_plain(m) for m in COLUMNS if checks[m]["by_run_times"]]:
        echo(f"{BAR}: by the error of run times in {', '.join(by_run_times)}")


def _show_policies(result: Mapping[str, Any]) -> None:
    ran, policies = result["ran"], result["policies"]
    best = {
        metric: (max if higher else min)(figures[metric] for figures in policies.values())
        for metric, higher in HIGHER_IS_BETTER.items()
    }
    none = NOT_JUDGED if result["record"]["missing"]["matters"] else WITHIN
    rows: list[Sequence[str]] = []
    for name, figures in policies.items():
        beyond = figures["beyond_model_error"]
        cells = [
            _number(figures[m]) + ("*" if beyond[m] and figures[m] == best[m] else " ")
            for m in COLUMNS
        ]
        gain = _percent(figures["gain"]["utilization"]) if beyond["utilization"] else none
        shown = f"{name} (simulated only)" if figures["simulated_only"] else name
        rows.append((shown, cells[0], "ran" if name == ran else gain, *cells[1:]))
    utilization, *others = COLUMNS.values()
    emit_table(("policy, simulated", utilization, "gain", *others), rows)
    starred = any(cell.endswith("*") for _, *cells in rows for cell in cells)
    star = "; * best, and beyond the model error" if starred else ""
    echo(
        f"gain: in utilization, relative to {ran}, simulated{star}; makespan: from the beginning "
        "of the record"
    )


def _show_jobs(result: Mapping[str, Any], whole: str) -> None:
    others = [name for name in result["policies"] if name != result["ran"]]
    for name in others[:MOST_POLICIES]:
        jobs = result["policies"][name]["jobs"]
        changes = [_jobs(kind, jobs[kind]) for kind in ("gain", "lose")]
        none = "no job gains or loses by more than the model error"
        echo(f"{name}: {whole}{'; '.join(filter(None, changes)) or none}")


def _show_decisions(result: Mapping[str, Any]) -> None:
    """Say what each allocation policy must know of a job, and of how many jobs it does not.

    Also which policies no site runs.
    """
    for name, figures in result["policies"].items():
        if refusal := figures["simulated_only"]:
            echo(f"{name}: simulated only; 'penstock up' refuses it: {refusal}")
        decisions = figures["decisions"]
        if decisions is None:
            continue
        parts = [f"{name} must know: {', '.join(figures['needs']) or 'nothing'}"]
        if unmet := decisions["unmet_needs"]:
            of = (f"{n} of {units.show_count(jobs, 'job')}" for n, jobs in unmet.items())
            parts.append(f"not known: {', '.join(of)}")
        if jobs := decisions["jobs_by_fallback"]:
            parts.append(f"{units.show_count(jobs, 'job')} by the fallback policy")
        echo("; ".join(parts))


def _jobs(kind: str, jobs: Sequence[Mapping[str, Any]]) -> str:
    if not jobs:
        return ""
    listed = (
        f"{job['job']} {100 * job['change']:+.1f}% ({job['ran']:.4g} to {job['simulated']:.4g} s)"
        for job in jobs
    )
    return f"{kind}s most: {', '.join(listed)}"


def _show_packing(packing: Mapping[str, Any]) -> None:
    fields = {
        "makespan": "makespan",
        "packs": "packs",
        "pack_stretch": "pack\nstretch",
        "max_stretch": "max\nstretch",
        "executing": "executing",
        "delayed": "delayed",
        "idle": "idle",
        "overrun": "overrun",
    }
    rows = [
        (name, *(_number(measured[key]) for key in fields))
        for name, measured in packing["policies"].items()
    ]
    emit_table(
        ("packer", *fields.values()),
        rows,
        title=f"packs of the same jobs, all ready at the beginning, under {packing['sharing']}, on "
        f"{packing['nodes']:,} nodes",
    )
    echo("packers compare with each other: the table above has the jobs' own start times")


def _plain(metric: str) -> str:
    return metric.replace("_", " ")


def _percent(part: float) -> str:
    # Without the minus of a difference that is rounded to zero.
    return "-" if math.isnan(part) else f"{round(100 * part, 2) + 0.0:+.2f}%"


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4f}"
