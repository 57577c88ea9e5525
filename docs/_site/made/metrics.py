"""One page per metric of a simulation: the definition is the docstring in the code."""

import inspect

from made.text import attributes, commands, escaped, fenced, table
from penstock.policies.base import Verdict
from penstock.sim import metrics
from penstock.sim.metrics import JobMetrics, Metrics

FROM = {
    "utilization": "paper io-sets, Section V-D",
    "max_stretch": "paper io-sets, Section V-D",
    "io_slowdown": "paper io-sets, Section V-D",
    "min_yield": "Benoit et al., JPDC 2024",
    "efficiency": "Benoit et al., JPDC 2024",
    "makespan": "paper packs, Section 6",
    "utilization_bound": "Penstock; paper io-sets, Section V, has 1 - omega / N",
}
BEST = {
    "max_stretch": "smaller",
    "io_slowdown": "smaller",
    "makespan": "smaller",
    "utilization_bound": "a property of the work done",
}
DIVIDED = {
    "mean_slowdown": "Mean over jobs of the I/O-SlowDown: how much longer a job's I/O takes beside "
    "the others than alone.",
    "idle_time": "Time that compute nodes spend waiting for I/O, weighted by nodes.",
    "bandwidth": "What all jobs transfer together.",
}


def pages() -> dict[str, str]:
    """Return a page for every metric of a run, and one for those of its jobs."""
    texts = attributes(Metrics)
    pages_by_uri = {
        f"reference/metrics/{name.replace('_', '-')}.md": _page(name, t)
        for name, t in texts.items()
    }
    pages_by_uri["reference/metrics/jobs.md"] = _jobs()
    return pages_by_uri


def _page(name: str, text: str) -> str:
    others = ", ".join(
        f"[`{other}`]({other.replace('_', '-')}.md)"
        for other in attributes(Metrics)
        if other != name
    )
    lines = [
        f"# {name}",
        "*A figure of a simulated run, taken in a [window of time](index.md).*",
        escaped(text),
        table(
            ("", ""),
            [
                ("better", BEST.get(name, "larger")),
                ("from", FROM[name]),
                ("in `--json`", f"`{name}`"),
                ("in the code", "`penstock.sim.metrics.Metrics`"),
            ],
        ),
        "Here e_cpu is the time that a job computed inside the window, e_io the isolated length of "
        "the I/O it got done, e_phase that of its I/O phases, in proportion to their time inside, "
        "and T the time it was there.",
        "## See it",
        commands(
            "penstock generate io-sets --jobs 20 --horizon 4000 --out jobs.json",
            "penstock simulate jobs.json --policy set-10",
            "penstock compare jobs.json --policies fair-share,set-10",
        ),
        f"Others: {others}. A recorded day has the same figures: "
        "[what-if](../../simulate/what-if.md).",
    ]
    return "\n\n".join(lines) + "\n"


def _jobs() -> str:
    rows = [(f"`{name}`", escaped(text)) for name, text in attributes(JobMetrics).items()]
    lines = [
        "# Each job's figures",
        "*Of a simulated run, in its window: `penstock simulate --jobs` shows them.*",
        table(("name", "what it is"), rows),
        commands(
            "penstock generate io-sets --jobs 20 --horizon 4000 --out jobs.json",
            "penstock simulate jobs.json --policy set-10 --jobs",
        ),
        "## How they are taken",
        escaped(inspect.cleandoc(metrics.__doc__ or "")),
        fenced(inspect.getsource(metrics.measure_jobs), "python"),
        "## Of a division of resources",
        "What `penstock allocate`, `place` and the policy `search` weigh "
        f"({escaped(Verdict.__doc__ or '')}):",
        table(("name", "what it is"), [(f"`{n}`", t) for n, t in DIVIDED.items()]),
    ]
    return "\n\n".join(lines) + "\n"
