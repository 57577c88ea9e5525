"""One page per policy: what it does, what it needs, its options, its paper, how to run it."""

import inspect
import sys
from pathlib import Path
from typing import Any

from made import papers
from made.text import commands, escaped, fenced, paragraphs, table
from penstock import registry

KINDS = {
    "sharing": "who may transfer now, and with which share",
    "allocation": "how many I/O nodes or storage targets each job gets",
    "placement": "which ones",
    "packing": "which jobs run together, behind which I/O node",
    "tuning": "which value of an I/O node's parameter suits what it serves",
}
NEEDS = {
    "w_iter": "the mean length of an iteration; learnt while jobs run",
    "profile": "the class that a generator drew a job from: known in simulations alone",
    "remaining": "what is left of a phase; known for jobs that announce it, "
    "[turns](../../../live/turns.md#announcing-phases)",
    "progress": "what a job has done so far; counted",
    "io": "the length of a phase; known for jobs that announce it",
    "work": "the length of a whole run; known for jobs that announce it",
    "curve": "the job's bandwidth by number of resources, "
    "[jobs files](../../../formats/jobs-files.md)",
    "best-count": "the number of resources at which its bandwidth is highest",
    "volume": "what the job moves",
    "compute": "how long it computes",
    "nodes": "its compute nodes",
    "processes": "its processes",
}
UNKNOWABLE = "profile"
"""What a live controller cannot know; it refuses a policy that needs it."""
_UP = "mkdir -p data; penstock up --root data --io-nodes 2 --state state"
_RUN = (
    "penstock run --state state -- cp -v examples/queue.json data",
    "penstock down --state state",
)


def pages() -> dict[str, str]:
    """Return the list of policies, and a page each."""
    pages_by_uri = {"reference/policies/index.md": _index()}
    for kind, policies in registry.POLICIES.items():
        for name in sorted(policies):
            pages_by_uri[f"reference/policies/{kind}/{name}.md"] = _page(kind, name)
    return pages_by_uri


def _index() -> str:
    lines = [
        "# Policies",
        "One policy, one file, one page. `penstock policies` lists them on a terminal, and "
        "[write a policy](../../simulate/write-a-policy.md) explains how to add yours. The same "
        "objects run in the simulator and on a live system.",
    ]
    for kind, question in KINDS.items():
        rows = []
        for name in sorted(registry.POLICIES[kind]):
            cls = registry.load(kind, name)
            needs = ", ".join(f"`{need}`" for need in sorted(getattr(cls, "needs", ())))
            rows.append((f"[`{name}`]({kind}/{name}.md)", summary(cls, name), needs or "nothing"))
        head = f"## {kind.capitalize()}\n\nDecides {question}."
        lines += [head, table(("policy", "what it does", "needs"), rows)]
    return "\n\n".join(lines) + "\n"


def _page(kind: str, name: str) -> str:
    cls = registry.load(kind, name)
    text = _text(cls)
    source = Path(inspect.getsourcefile(cls) or "").resolve()
    place = "src/penstock" + source.as_posix().rpartition("/penstock")[2]
    cited = papers.citations(text)
    lines = [
        f"# {name}",
        f"*A policy of [{kind}](../index.md#{kind}): {KINDS[kind]}.*",
        paragraphs(text),
        "## From",
        "\n".join(f"- {paper}" for paper in cited) or _origin(text),
        "## What it needs",
        _needs(cls),
        "## Options",
        _options(kind, cls),
        "## Simulated",
        _simulated(kind, name),
        "## Live",
        _live(kind, name, cls),
        "## Source",
        f"`{place}`, whole:",
        fenced(source.read_text(), "python"),
    ]
    return "\n\n".join(lines) + "\n"


def _text(cls: type[Any]) -> str:
    module = sys.modules[cls.__module__]
    return inspect.cleandoc(module.__doc__ or cls.__doc__ or "")


def summary(cls: type[Any], name: str) -> str:
    """Return the first sentence of a policy's text."""
    first = " ".join(_text(cls).split("\n\n")[0].split()).removeprefix(f"{name}: ")
    return escaped(first)


def _origin(text: str) -> str:
    return "Penstock." if "ours" in text.lower() else "Common practice, without a paper."


def _needs(cls: type[Any]) -> str:
    needs = sorted(getattr(cls, "needs", ()))
    if not needs:
        return "Only the order of arrival."
    return table(("of a job", "what it is"), [(f"`{need}`", NEEDS[need]) for need in needs])


def _options(kind: str, cls: type[Any]) -> str:
    defaults = registry.options(cls)
    if not defaults:
        return "None."
    rows = [(f"`{option}`", f"`{default!r}`") for option, default in defaults.items()]
    flag = f"`--set {kind}.options.{next(iter(defaults))}=VALUE`, or `[{kind}.options]` in TOML."
    return f"{table(('option', 'default'), rows)}\n\nSet with {flag}"


def _simulated(kind: str, name: str) -> str:
    jobs = "examples/applications.json --io-nodes 12"
    match kind:
        case "sharing":
            return commands(
                "penstock generate io-sets --jobs 20 --horizon 4000 --out jobs.json",
                f"penstock simulate jobs.json --policy {name}",
            )
        case "allocation":
            few = " --set allocation.options.budget=40" if name == "search" else ""
            if name in {"process", "zero"}:  # what is drawn has no processes, no direct access
                return commands(f"penstock allocate {jobs} --nodes 384 --policy {name}")
            return commands(
                f"penstock allocate {jobs} --nodes 384 --policy {name}",
                "penstock generate io-resources --jobs 10 --theta 0.3 --out resources.json",
                f"penstock simulate resources.json --allocation {name} "
                f"--set site.resources=20 --set site.nodes=480{few}",
            )
        case "placement":
            return commands(f"penstock place {jobs} --nodes 384 --policy {name}")
        case "packing":
            return commands(
                f"penstock pack examples/queue.json --io-nodes 2 --nodes 192 --policy {name}"
            )
        case _:
            return commands(
                f"penstock tuner simulate --policy {name} --observations 20 --repetitions 2"
            )


def _refusal(cls: type[Any]) -> str:
    """Say why a live site refuses a policy; nothing if it does not."""
    if UNKNOWABLE in getattr(cls, "needs", ()):
        return (
            f"Not available: it needs `{UNKNOWABLE}`, which is not known of a real job, and a "
            "controller refuses it."
        )
    why = getattr(cls, "offline", "")
    return f"Not available: {why}." if why else ""


def _live(kind: str, name: str, cls: type[Any]) -> str:
    if refusal := _refusal(cls):
        return refusal
    match kind:
        case "sharing":
            return commands(f"{_UP} --policy {name} --mode enforce", *_RUN)
        case "allocation":
            learnt = sorted({"curve", "volume", "compute"} & getattr(cls, "needs", frozenset()))
            note = (
                f"A controller [learns](../../../live/knowledge.md) {' and '.join(learnt)} from "
                "earlier phases of the application, or imports them (`penstock curves import`)."
                "\n\n"
                if learnt
                else ""
            )
            needed = {"static": " --set site.nodes=4", "zero": " --set site.direct=true"}
            site = needed.get(name, "")
            return note + commands(f"{_UP} --allocation {name}{site} --mode enforce", *_RUN)
        case "placement":
            flags = f"--allocation one --set placement.policy={name} --mode enforce"
            return commands(f"{_UP} {flags}", *_RUN)
        case "packing":
            return (
                "A packer plans a queue before it starts; the jobs then run as any others. "
                "[Live against simulated](../../../papers/live-validation.md) runs its schedules "
                "on real processes."
            )
        case _:
            flags = f"--scheduler twins --tune window --set tuning.policy={name} --mode enforce"
            return commands(f"{_UP} {flags}", *_RUN)
