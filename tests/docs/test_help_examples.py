"""The examples of every `--help`, which the manual and the site's reference show, are right.

All of them are words that their verbs take. Those that start nothing are run; of the others a table
says where the verb is run for real.
"""

import gzip
import shlex
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import click
import pytest
from docs.pages import ROOT
from docs.shell_session import LOG, provide, quickly

from penstock.cli import penstock
from penstock.cli.common import manual


def verb_of(command: str) -> str:
    """Return the verb of a command, the verb below it included."""
    words = shlex.split(command.partition("penstock ")[2])
    two = " ".join(words[:2])
    return two if manual.page(*words[:2]) is not None and len(words) > 1 else words[0]


EXAMPLES = [
    (page.command, example.command)
    for page in manual.pages()
    for example in page.examples
    if example.command.split("penstock ", 1)[-1]
]
ELSEWHERE = {
    "reproduce": "tests/cli/test_reproduce.py",
    "explore": "tests/live/measure/test_explorer.py",
    "patterns measure": "tests/live/measure/test_pattern_survey.py",
    "tuner measure": "tests/live/measure/test_window_survey.py",
    "up": "tests/cli/test_live_verbs.py",
    "run": "tests/cli/test_live_verbs.py",
    "status": "tests/cli/test_live_verbs.py",
    "top": "tests/cli/test_top.py",
    "explain": "tests/cli/test_explain.py",
    "mode": "tests/cli/test_mode.py",
    "curves show": "tests/cli/test_curves.py",
    "curves import": "tests/cli/test_curves.py",
    "curves forget": "tests/cli/test_curves.py",
    "remap": "tests/cli/test_live_verbs.py",
    "down": "tests/cli/test_live_verbs.py",
    "standby": "tests/live/deployment/test_standby.py",
    "ionode": "tests/live/client/test_on_gluster.py",
    "agent": "tests/slurm/site.py",
    "slurm licences": "tests/slurm/test_licences.py",
    "slurm watch": "tests/slurm/test_licences.py",
}
"""Verbs that serve, or take minutes: where they are run for real."""
EXCEPT = {
    "penstock what-if monday.jsonl.gz --window '9 h:17 h' --json": "tests/cli/test_what_if.py",
    "penstock compare days/*.json --out year --on slurm --set campaign.jobs=20": (
        "tests/slurm/test_campaigns.py"
    ),
    "penstock profile --curves explored/curves.json": "docs/writes/profile.md",
    "penstock samples import ior.txt --machine titan --out mine.csv": "tests/cli/test_samples.py",
    "penstock samples import sum.csv --machine titan --cores 16 --shared --out mine.csv": (
        "tests/cli/test_samples.py"
    ),
    "penstock samples import curves/runs.jsonl --from explorer --machine here --out mine.csv": (
        "docs/formats/samples.md"
    ),
    "penstock samples simulate cetus --out cetus.csv": "docs/formats/samples.md",
    "penstock write-model train runs.csv --machine ./ours.toml --out model.json "
    "--technique lasso": "tests/cli/test_write_model.py",
    "penstock allocate curves/curves.json --io-nodes 4": "docs/formats/pattern-files.md",
    "penstock tuner show": "docs/live/council.md",
    "penstock tuner show --state ./state --json": "docs/live/council.md",
    "penstock tuner show state/tuning/discounted-ucb.json": "docs/formats/learned-files.md",
    "penstock tuner simulate --learned state/tuning/discounted-ucb.json": "docs/live/council.md",
    "penstock man --out ~/.local/share/man/man1": "tests/docs/test_man.py",
}
"""Examples that need more than a file or two: where the like of them is run."""
RUN = [
    (verb, command)
    for _, command in EXAMPLES
    if (verb := verb_of(command)) not in ELSEWHERE and command not in EXCEPT
]
SWF = "; MaxNodes: 4\n1 0 5 600 8 -1 -1 8 900 -1 1 3 1 7 1 1 -1 -1\n"
RECORD = "record-20260302-000000-a1b2-0003.jsonl"
JOBS = {"allocate": "applications.json", "place": "applications.json", "pack": "queue.json"}


@pytest.mark.parametrize(("page", "command"), EXAMPLES, ids=[command for _, command in EXAMPLES])
def test_its_words_are_taken(page: str, command: str) -> None:
    """Every verb, option and choice is known, and what is needed is there."""
    words = shlex.split(command.partition("penstock ")[2].split(" | ")[0].split(" > ")[0])
    words = [word for word in words if word != "&"]
    ctx, current = click.Context(penstock), click.Command("none")
    while isinstance(group := ctx.command, click.Group) and words:
        current = group.get_command(ctx, words[0]) or pytest.fail(f"{command}: no {words[0]}")
        name = words.pop(0)
        if isinstance(current, click.Group):
            ctx = click.Context(current, parent=ctx, info_name=name)
        else:
            ctx = current.make_context(name, list(words), parent=ctx)
    assert not isinstance(current, click.Group)
    assert page.split(maxsplit=1)[0] == "penstock"


@pytest.fixture(scope="module")
def common(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the examples speak of, whatever their verb."""
    here = tmp_path_factory.mktemp("world")
    provide(here)
    drawn = "penstock generate io-sets --jobs 6 --horizon 20000 --out "
    simulated = (
        "penstock samples simulate titan --part 0.02 --nodes 1,2,4,8,16,32,64,128,200 --out "
    )
    for command in (
        *(drawn + name for name in ("monday.json", "jobs.json", "jobs.npz")),
        drawn + "tuesday.json --seed 2",
        *(simulated + name for name in ("runs.csv", "later.csv")),
        "penstock write-model train runs.csv --machine titan --out mine.json",
    ):
        made = quickly(command, here)
        assert made.status == 0, made.err
    (here / "log.swf").write_text(SWF)
    source = (here / "examples/longest_first.py").read_text()
    (here / "mine.py").write_text(source.replace("LongestFirst", "Mine"))
    record = (here / "examples/record.jsonl").read_bytes()
    for name in (RECORD, f"state/records/{RECORD}"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_bytes(record)
    (here / "monday.jsonl.gz").write_bytes(gzip.compress(record))
    data = ROOT / "src/penstock/data"
    shutil.copy(data / "machines/titan.toml", here / "ours.toml")
    shutil.copy(data / "observations.csv", here / "seen.csv")
    shutil.copy(data / "windows.csv", here / "windows.csv")
    (here / "logs/2026/11").mkdir(parents=True)
    shutil.copy(here / LOG, here / "logs/2026/11")
    return here


@pytest.fixture(scope="module")
def worlds(common: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Each verb has a directory of its own: a model is something else to another."""

    @cache
    def world(verb: str) -> Path:
        here = tmp_path_factory.mktemp(verb)
        shutil.copytree(common, here, dirs_exist_ok=True)
        if verb in JOBS:
            shutil.copy(here / "examples" / JOBS[verb], here / "jobs.json")
        if verb == "patterns":
            shutil.copy(ROOT / "src/penstock/data/patterns.json", here / "model.json")
        else:
            shutil.copy(here / "mine.json", here / "model.json")
        return here

    return world


@pytest.mark.parametrize(("verb", "command"), RUN, ids=[command for _, command in RUN])
def test_it_works(verb: str, command: str, worlds: Callable[[str], Path]) -> None:
    ended = quickly(command, worlds(verb.split(maxsplit=1)[0]))
    assert ended.status == 0, ended.err
    assert ended.out or " > " in command


def test_those_that_are_run_elsewhere_are() -> None:
    """The table is of verbs and examples that there are, and of files that speak of them."""
    verbs = {verb_of(command) for _, command in EXAMPLES}
    assert set(ELSEWHERE) <= verbs
    assert set(EXCEPT) <= {command for _, command in EXAMPLES}
    for verb, file in ELSEWHERE.items():
        assert verb.split()[-1] in (ROOT / file).read_text(), f"{file} does not run {verb!r}"
    for command, file in EXCEPT.items():
        assert verb_of(command).split()[-1] in (ROOT / file).read_text(), command
