"""Every block of code on every page is of a kind that something checks: no command goes untested.

`console` and `python` are run (test_commands, test_made_commands), `bash` are the examples of
`--help` (test_help_examples), data must be readable, expressions must be Prometheus's. What can
only be typed on a cluster, or as root, is `sh`, and a table says what does the like of it.
"""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from docs import pages
from docs.pages import ROOT, blocks
from docs.shell_session import provide, typed

from penstock.cli import VERBS

PAGES = pages.written() | pages.from_code()
RUN = {"console", "python", "bash"}
DATA = {"json", "toml", "ini", "log", "promql", "text", ""}
ELSEWHERE = {
    "pip install": ("Makefile", "pip install"),
    "/opt/penstock/bin/pip install": ("Makefile", "pip install"),
    "python3 -m venv": ("Makefile", "-m venv"),
    "pip download": ("tests/distribution/test_wheel.py", '"download"'),
    "~/penstock/bin/pip install": ("tests/distribution/test_wheel.py", "--find-links"),
    "~/penstock/bin/penstock policies": ("tests/docs/test_commands.py", "penstock"),
    "make wheel": ("tests/distribution/test_wheel.py", "build-wheel"),
    "module load": ("tests/distribution/test_modulefile.py", "module load penstock"),
    "penstock down": ("tests/cli/test_live_verbs.py", '"down"'),
    "penstock up --root": ("tests/cli/test_live_verbs.py", '"up"'),
    "python benchmarks/dashboard.py": ("Makefile", "benchmarks/dashboard.py"),
    "dask scheduler": ("tests/campaign/test_on_dask.py", "scheduler"),
    "dask worker": ("tests/campaign/test_on_dask.py", "worker"),
    "sbatch --comment='penstock: ": (
        "tests/slurm/test_applications.py",
        "penstock: application=ocean",
    ),
    "PENSTOCK_APPLICATION=ocean": (
        "tests/slurm/test_applications.py",
        '"PENSTOCK_APPLICATION": "ocean',
    ),
    "salloc -N": ("tests/slurm/test_measure.py", '"salloc"'),
    "sbatch -N 4 --wrap 'penstock patterns measure": (
        "tests/slurm/test_measure.py",
        '"patterns", "measure"',
    ),
    "penstock reproduce io-sets --full": ("Makefile", "--full"),
    "penstock reproduce all": ("tests/cli/test_reproduce_all.py", "all"),
    "make test": (".ci/run", "make test"),
    "make demo": ("Makefile", "reproduce demo"),
    ". .venv/bin/activate": ("Makefile", "PATH"),
    "make lint": ("tests/run.py", '"lint"'),
    "penstock key": ("tests/hosts/site.py", "key"),
    "echo 'PENSTOCK_UP=--root /scratch --io-nodes 0 --listen": ("tests/hosts/site.py", "--listen"),
    "echo 'export PENSTOCK_CONTROLLER": (
        "tests/live/deployment/test_users_of_other_hosts.py",
        "PENSTOCK_CONTROLLER",
    ),
    "echo 'PENSTOCK_AGENT_OPTIONS": ("tests/hosts/site.py", "--controller"),
    "useradd": ("tests/slurm/test_units.py", "deploy"),
    "cp deploy/systemd": ("tests/slurm/test_units.py", "systemd"),
    "echo 'PENSTOCK_UP=--root /scratch --io-nodes 2 --all-users'": (
        "tests/slurm/test_users.py",
        "--all-users",
    ),
    "systemctl restart": ("tests/slurm/test_units.py", "Restart=always"),
    "systemctl enable": ("tests/slurm/test_units.py", "systemd"),
    "penstock slurm licences": ("tests/slurm/test_licences.py", "keep-back"),
    "penstock slurm watch": ("tests/slurm/test_licences.py", "watch"),
    "login1#  penstock up": ("tests/hosts/site.py", "remote-io-nodes"),
    "login1#  penstock key /etc": ("tests/hosts/site.py", "key"),
    "node7#   penstock agent": ("tests/live/deployment/test_users_of_other_hosts.py", '"agent"'),
    "node7#   echo 'export PENSTOCK_CONTROLLER": (
        "tests/live/deployment/test_users_of_other_hosts.py",
        "PENSTOCK_CONTROLLER",
    ),
    "io1$": ("tests/hosts/site.py", "ionode"),
    "io2$": ("tests/hosts/site.py", "ionode"),
    "node7$   penstock run": ("tests/live/deployment/test_users_of_other_hosts.py", '"run"'),
    "node7$   penstock status": ("tests/live/deployment/test_users_of_other_hosts.py", '"status"'),
    "node7$   penstock explain": (
        "tests/live/deployment/test_users_of_other_hosts.py",
        '"explain"',
    ),
    "login1#  penstock key ada.key": ("tests/security/test_user_keys.py", "of_user"),
}
"""What a line of `sh` begins with: the file that does it, and what stands there."""


@pytest.mark.parametrize("page", PAGES)
def test_blocks_are_of_a_kind_that_is_checked(page: str) -> None:
    kinds = set(re.findall(r"^```(\w*)\n(?:.*?)^```", PAGES[page], re.M | re.S))
    assert kinds <= RUN | DATA | {"sh"}
    if "bash" in kinds:
        assert page.startswith("docs/reference/verbs/"), "examples of --help are there alone"


@pytest.mark.parametrize("page", PAGES)
def test_nothing_that_looks_like_a_command_is_mere_text(page: str) -> None:
    verbs = "|".join(VERBS)
    for block in blocks(PAGES[page], *(DATA - {"promql"})):
        if page.startswith("docs/reference/verbs/"):
            continue  # a synopsis
        assert not re.search(rf"^(\$ )?penstock ({verbs})\b", block, re.M), block


def lines(block: str) -> list[str]:
    return [line for line in block.replace("\\\n", " ").splitlines() if line.strip()]


def test_what_is_not_run_here_is_run_elsewhere() -> None:
    used = set()
    for page, text in PAGES.items():
        for line in [line for block in blocks(text, "sh") for line in lines(block)]:
            begins = [words for words in ELSEWHERE if line.startswith(words)]
            assert begins, f"{page}: {line!r} is run nowhere; make it console, or say where it is"
            used |= set(begins)
    assert used == set(ELSEWHERE), f"no page has {set(ELSEWHERE) - used} any more"


@pytest.mark.parametrize("words", ELSEWHERE)
def test_elsewhere_is_somewhere(words: str) -> None:
    file, quote = ELSEWHERE[words]
    assert quote in (ROOT / file).read_text()


@pytest.mark.parametrize("page", PAGES)
def test_data_can_be_read(page: str) -> None:
    for block in blocks(PAGES[page], "json"):
        json.loads(block)
    for block in blocks(PAGES[page], "toml"):
        tomllib.loads(block)


def test_settings_of_slurm_are_those_of_the_cluster_that_tests_run() -> None:
    """And the hooks that they name are shipped."""
    files = [*(ROOT / "tests/slurm").glob("*.py"), ROOT / "examples/slurm/one_host.py"]
    cluster = "".join(file.read_text() for file in files)
    (settings,) = blocks(PAGES["docs/live/slurm.md"], "ini")
    for key, _, value in (line.partition("=") for line in lines(settings)):
        assert key in cluster
        if value.startswith("/etc/slurm/penstock/"):
            assert (ROOT / "deploy/slurm" / Path(value).name).is_file()


def test_expressions_are_those_of_prometheus(tmp_path: Path) -> None:
    """`promtool` reads each as the expression of a rule."""
    expressions = [b.strip() for text in PAGES.values() for b in blocks(text, "promql")]
    assert expressions
    rules = [{"record": f"one:{k}", "expr": expression} for k, expression in enumerate(expressions)]
    # JSON is YAML.
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "docs", "rules": rules}]}))
    command = ["promtool", "check", "rules", str(tmp_path / "rules.yml")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{len(expressions)} rules found" in ended.stdout


def test_a_damaged_log_is_told_as_the_page_says(tmp_path: Path) -> None:
    (shown,) = blocks(PAGES["docs/writes/profile.md"], "log")
    provide(tmp_path)
    (tmp_path / "logs").mkdir()
    whole = (tmp_path / "run.darshan").read_bytes()
    for k in range(6):
        (tmp_path / f"logs/{k}.darshan").write_bytes(whole)
    (tmp_path / "logs/cut.darshan").write_bytes(whole[: len(whole) // 2])
    ended = typed("penstock profile logs", tmp_path)
    assert ended.status == 1
    assert set(lines(shown)) <= set(lines(ended.err))
