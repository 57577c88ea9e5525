"""The commands and code on every page of the documentation work as written."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from docs import pages
from docs.pages import ROOT, blocks, commands
from docs.shell_session import WITHIN, provide, quickly, typed
from shared import locked, studies_folder

from penstock import config
from penstock.cli.verbs.reproduce import reproduce
from penstock.sim import formats
from penstock.sim.formats.jobs_file import read_jobs

PAGES = pages.written()
QUICK = next((flag for p in reproduce.params for flag in p.opts if flag == "--quick"), None)
"""What makes a study small enough to be run here; without it, tests/studies alone runs studies."""
FIRST = ("README.md", "docs/get-started/")
"""Pages whose commands all run in a shell and a process of their own, as for a new user."""
STUDY = re.compile(r"^penstock reproduce (?!--list)(\S+)(?: .*?)?--out (\S+)")
EVERY_STUDY = "all"
"""All studies in one command: each is run by its own name here, all of them by tests/studies."""
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```\n", re.M | re.S)


@pytest.fixture(scope="session")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study is run once, whatever the number of pages that name it and of workers."""
    return studies_folder(tmp_path_factory)


@pytest.mark.timeout(2 * WITHIN)
@pytest.mark.parametrize("page", [page for page, text in PAGES.items() if commands(text)])
def test_commands(page: str, tmp_path: Path, studies: Path) -> None:
    provide(tmp_path)
    output_of = {}
    for command in commands(PAGES[page]):
        if study := STUDY.match(command):
            reproduced(study[1], tmp_path / study[2], studies)
            continue
        ended = (typed if page.startswith(FIRST) else quickly)(command, tmp_path)
        assert ended.status == 0, f"{command}\n{ended.err}"
        assert ended.out, f"{command} prints nothing"
        output_of[command] = ended.out
    for last, shown in outputs(PAGES[page]):
        assert matches(output_of[last], shown), f"{last} prints\n{output_of[last]}"


def outputs(text: str) -> Iterator[tuple[str, str]]:
    """Yield each `text` right below a `console`, with the command that it is the output of."""
    for before, after in pairwise(_FENCED.finditer(text)):
        beside = not text[before.end() : after.start()].strip()
        if beside and (before[1], after[1]) == ("console", "text"):
            yield commands(before[0])[-1], after[2]


def reproduced(study: str, out: Path, studies: Path) -> None:
    """Run a study in its smallest size, or take what was run before."""
    if QUICK is None or study == EVERY_STUDY:
        return
    with locked(studies / f"{study}.lock"):
        if not (studies / study).exists():
            ended = typed(f"penstock reproduce {study} {QUICK} --out {study}.part", studies)
            assert ended.status == 0, f"{study}\n{ended.err}"
            (studies / f"{study}.part").rename(studies / study)
    shutil.copytree(studies / study, out)


def matches(output: str, shown: str) -> bool:
    """Say whether a page shows what a command says; a line of dots stands for any lines."""
    lines = [re.escape(line.rstrip()) for line in shown.strip("\n").splitlines()]
    wanted = "\n".join(".*" if line == re.escape("...") else line for line in lines)
    text = "\n".join(line.rstrip() for line in output.strip("\n").splitlines())
    return re.fullmatch(wanted, text, re.S) is not None


def test_there_are_commands_to_test() -> None:
    assert sum(len(commands(text)) for text in PAGES.values()) >= 100
    assert {
        study[1] for text in PAGES.values() for c in commands(text) if (study := STUDY.match(c))
    }


def test_what_is_shown_is_compared() -> None:
    assert matches("a\nb \nc\n", "a\n...\nc\n")
    assert not matches("a\nb\n", "a\nc\n")
    page = "```console\n$ a\n$ b\n```\n\n```text\nsaid\n```\n\nand\n\n```text\nfree\n```\n"
    assert list(outputs(page)) == [("b", "said\n")]


def test_the_json_example_is_a_workload(tmp_path: Path) -> None:
    (example,) = blocks(PAGES["docs/formats/workload-files.md"], "json")
    (tmp_path / "jobs.json").write_text(example)
    workload = formats.read(tmp_path / "jobs.json")
    assert workload.ids == ["climate", "genome"]
    assert workload.compute[3] == 300.0


@pytest.mark.parametrize(
    ("page", "names"),
    [("writes/predict", ["climate", "genome"]), ("formats/jobs-files", ["BT-C", "new"])],
)
def test_the_jobs_have_curves(page: str, names: list[str], tmp_path: Path) -> None:
    (example,) = blocks(PAGES[f"docs/{page}.md"], "json")
    (tmp_path / "jobs.json").write_text(example)
    jobs = read_jobs(tmp_path / "jobs.json")
    assert [job.id for job in jobs if job.curve is not None] == names


def test_the_toml_example_is_a_configuration(tmp_path: Path) -> None:
    (example,) = blocks(PAGES["docs/reference/configuration.md"], "toml")
    (tmp_path / "penstock.toml").write_text(example)
    loaded = config.load(tmp_path / "penstock.toml", environment={})
    assert loaded.config.site.site().bandwidth == 2 * 2**30


@pytest.mark.parametrize("page", [page for page, text in PAGES.items() if blocks(text, "python")])
def test_python_examples_run(page: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for code in blocks(PAGES[page], "python"):
        result = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=False
        )
        assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    """In the repository as it is read without the site; made pages are test_site's."""
    made = pages.from_code()
    for target in re.findall(r"\]\(([^)#]+)\)", PAGES[page]):
        if "://" not in target:
            path = ((ROOT / page).parent / target).resolve()
            assert path.exists() or path.relative_to(ROOT).as_posix() in made, target
