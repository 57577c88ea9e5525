"""Policies that an installed package offers through entry points."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

GOOD = "    def group(self, job):\n        return 'all'\n"
MISSPELT = GOOD + "    def wieght(self, job):\n        return 2.0\n"
HEADING = "from penstock.policies.base import ByArrival\n\n\nclass Mine(ByArrival):\n"


def install(directory: Path, body: str, target: str = "site_policies:Mine") -> None:
    """Install a package in a directory as pip does: a module, and metadata beside it."""
    (directory / "site_policies.py").write_text(f'{HEADING}    """Mine: one group."""\n{body}')
    metadata = directory / "site_policies-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: site-policies\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[penstock.sharing]\nmine = {target}\n")


def penstock(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that finds the package: the table of policies is read once per process."""
    return subprocess.run(
        [Path(sys.executable).with_name("penstock"), *arguments],
        env={**os.environ, "PYTHONPATH": str(directory)},
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_policy_of_a_package_runs_by_its_name(tmp_path: Path, jobs: str) -> None:
    install(tmp_path, GOOD)
    ours, fcfs = (
        json.loads(penstock(tmp_path, "simulate", jobs, "--policy", name, "--json").stdout)
        for name in ("mine", "exclusive-fcfs")
    )
    assert ours["policy"] == "mine"
    assert ours["makespan"] == fcfs["makespan"]
    about = json.loads(penstock(tmp_path, "policies", "mine", "--json").stdout)
    assert (about["kind"], about["origin"]) == ("sharing", "other")
    assert "keeps the contract" in penstock(tmp_path, "policies", "check", "mine").stdout


@pytest.mark.parametrize(
    ("body", "target", "message"),
    [
        (MISSPELT, "site_policies:Mine", "did you mean 'weight'"),
        (GOOD, "site_policies:Other", "'mine' .*site_policies:Other.* no attribute 'Other'"),
        (GOOD, "no_such_module:Mine", "'mine' .*no_such_module:Mine.* No module"),
    ],
    ids=["method", "class", "module"],
)
def test_a_wrong_one_is_refused(
    tmp_path: Path, jobs: str, body: str, target: str, message: str
) -> None:
    install(tmp_path, body, target)
    refused = penstock(tmp_path, "simulate", jobs, "--policy", "mine")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("penstock: error: ")
    assert refused.stderr.count("\n") == 1
    assert re.search(message, refused.stderr)
