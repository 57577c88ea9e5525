"""Tables that compare the policies of a kind: what they need, live or not, their metrics."""

from functools import cache
from statistics import fmean

from made import policies
from made.text import escaped, table
from penstock import registry
from penstock.core import live_knowledge
from penstock.sim.engine import simulate
from penstock.sim.generators import PRESETS
from penstock.sim.metrics import measure

SEEDS = range(4)
METRICS = {"utilization": max, "max_stretch": min, "io_slowdown": min}
BEST = 3


@cache
def tables() -> dict[str, str]:
    """Return a table in Markdown for each kind of policy."""
    return {kind: _sharing() if kind == "sharing" else _others(kind) for kind in policies.KINDS}


def live(kind: str, name: str) -> str:
    """Say whether a controller can know what a policy needs, and from whom."""
    return live_knowledge.in_words(kind, getattr(registry.load(kind, name), "needs", ()))


def _sharing() -> str:
    names = sorted(registry.POLICIES["sharing"])
    workloads = [PRESETS["io-sets"].make(seed=seed) for seed in SEEDS]
    means: dict[str, dict[str, float]] = {}
    for name in names:
        runs = [measure(simulate(w, registry.sharing(name))) for w in workloads]
        means[name] = {metric: fmean(getattr(run, metric) for run in runs) for metric in METRICS}
    leaders = {
        metric: sorted(
            (name for name in names if live("sharing", name) != "no"),
            key=lambda name, metric=metric: means[name][metric],
            reverse=better is max,
        )[:BEST]
        for metric, better in METRICS.items()
    }
    rows = [
        (
            _link("sharing", name),
            _needs("sharing", name),
            live("sharing", name),
            *(f"{means[name][metric]:.3f}" for metric in METRICS),
            ", ".join(m.replace("_", " ") for m in METRICS if name in leaders[m]) or "-",
        )
        for name in names
    ]
    titles = ("policy", "needs", "live", "utilization", "max stretch", "I/O slowdown", "best at")
    return table(titles, rows)


def _others(kind: str) -> str:
    rows = [
        (
            _link(kind, name),
            _needs(kind, name),
            live(kind, name),
            policies.summary(registry.load(kind, name), name),
        )
        for name in sorted(registry.POLICIES[kind])
    ]
    return table(("policy", "needs", "live", "idea"), rows)


def _link(kind: str, name: str) -> str:
    return f"[`{name}`](../reference/policies/{kind}/{name}.md)"


def _needs(kind: str, name: str) -> str:
    needs = sorted(getattr(registry.load(kind, name), "needs", ()))
    return escaped(", ".join(needs)) or "nothing"
