"""The examples do what their pages say, as a reader would run them."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from limits import COMPUTING

EXAMPLES = Path(__file__).parents[2] / "examples"
WITHIN = COMPUTING


def run(*words: str | Path, folder: Path, check: bool = True) -> str:
    """Run a command in a folder, with the penstock that is tested in PATH; return its output."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        list(map(str, words)),
        cwd=folder,
        env=os.environ | {"PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )
    assert not check or done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout if check else done.stderr


def parts(output: str) -> dict[str, str]:
    """Return what stands below each heading."""
    pieces = re.split(r"^== (.*)\n", output, flags=re.M)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def test_a_policy_of_ones_own(tmp_path: Path) -> None:
    """Simulated and live; the record of the latter is decided by it, to the last action."""
    sections = parts(run(EXAMPLES / "custom-policy/run.sh", "out", folder=tmp_path))
    shown, simulated, live, again, others = sections.values()
    assert "options  patience=60.0" in shown
    rows = {
        line.split()[0].rpartition(":")[2]: float(line.split()[1].rstrip("*"))
        for line in simulated.splitlines()
        if "%" in line or " base " in line
    }
    assert rows.keys() == {"fair-share", "exclusive-fcfs", "set-10", "ShortCyclesFirst"}
    assert rows["exclusive-fcfs"] < rows["ShortCyclesFirst"] < rows["set-10"]  # as the page says
    assert "short_cycles_first.py:ShortCyclesFirst, enforce" in live
    assert "160 MiB forwarded, 0 B direct" in live
    assert re.search(r"\d+ events, [1-9]\d* actions: same decisions", again)
    assert others.startswith("model check: ")
    assert re.search(r"^set-10 ", others, re.M)


def test_its_turns_are_by_cycle_until_patience_ends(tmp_path: Path) -> None:
    run("penstock", "generate", "io-sets", "--out", "jobs.json", folder=tmp_path)
    mine = f"{EXAMPLES}/custom-policy/short_cycles_first.py:ShortCyclesFirst"
    simulate = ("penstock", "simulate", "jobs.json", "--json", "--policy", mine)

    def stretch(*more: str) -> float:
        value: float = json.loads(run(*simulate, *more, folder=tmp_path))["max_stretch"]
        return value

    assert stretch("--set", "sharing.options.patience=0") != stretch()


def test_a_site_from_one_file(tmp_path: Path) -> None:
    """What is simulated and what is deployed have the file's values, not the defaults."""
    file = EXAMPLES / "site.toml"
    settings = tomllib.loads(file.read_text())
    config = ("--config", str(file))
    run("penstock", "generate", "io-sets", "--out", "jobs.json", folder=tmp_path)

    def simulated(*more: str) -> Any:
        command = ("penstock", "simulate", "jobs.json", "--json", *more)
        return json.loads(run(*command, folder=tmp_path))

    mine = simulated(*config)
    assert mine["policy"] == settings["sharing"]["policy"]
    assert mine["io_slowdown"] != simulated("--policy", "set-10")["io_slowdown"]
    by_hand = ("--policy", "set-10", "--knowledge", "learned", "--set", "site.nodes=640")
    capacity = ("--set", f"site.capacity={settings['site']['capacity']}")
    options = ("--set", "sharing.options.unknown=5")
    assert mine["io_slowdown"] == simulated(*by_hand, *capacity, *options)["io_slowdown"]
    (tmp_path / "data").mkdir()
    state = ("--state", "state")
    run("penstock", "up", *config, *state, "--root", "data", "--io-nodes", "2", folder=tmp_path)
    try:
        status = json.loads(run("penstock", "status", "--json", *state, folder=tmp_path))
        kept = json.loads((tmp_path / "state/deployment.json").read_text())["config"]
    finally:
        run("penstock", "down", *state, folder=tmp_path)
    assert (status["policy"], status["mode"]) == (
        settings["sharing"]["policy"],
        settings["live"]["mode"],
    )
    assert kept["live"]["max-wait"] == settings["live"]["max-wait"]
    assert kept["sharing"]["options"] == settings["sharing"]["options"]


def test_from_logs_to_a_choice(tmp_path: Path) -> None:
    sections = parts(run(EXAMPLES / "darshan/choose.sh", "out", folder=tmp_path))
    logs, apart, together = sections.values()
    assert "sample-badost" in logs
    # Jobs that never met are served alike by all.
    assert "do not differ in any metric on this workload" in apart
    # Most of these jobs have one phase: nothing is learned of them that could be used.
    assert re.search(r"^choice: fair-share$", together, re.M)
    assert "the choice in 5 of 5 workloads" in together
    compared = json.loads((tmp_path / "out/compared.json").read_text())
    fair = compared["policies"].pop("fair-share")
    assert all(each["max_stretch"] > fair["max_stretch"] for each in compared["policies"].values())
    assert len(compared["files"]) == 5


def test_one_phase_jobs_do_not_queue_for_ever_on_a_live_site(tmp_path: Path) -> None:
    """Jobs of one phase and no history wait for all others; live, for max-wait at most."""
    run(EXAMPLES / "darshan/choose.sh", "out", folder=tmp_path)
    worst: dict[str, list[float]] = {"exclusive-fcfs": [], "set-10": []}
    for more in ([], ["--as-live"]):
        meets = sorted((tmp_path / "out").glob("meet-*.json"))
        arguments = ["--knowledge", "learned", "--policies", ",".join(worst), "--json", *more]
        compared = json.loads(run("penstock", "compare", *meets, *arguments, folder=tmp_path))
        for policy, figures in worst.items():
            figures.append(compared["policies"][policy]["max_stretch"])
    simulated, as_live = worst["exclusive-fcfs"]
    assert simulated > 1000
    assert as_live < 40, "30 s of waiting for a job of 1 s"
    simulated, as_live = worst["set-10"]
    assert as_live < simulated / 3, "what is left is a small share, not a wait"


def test_a_choice_that_treats_somebody_badly_is_not_made(tmp_path: Path) -> None:
    """The best utilization does not count where the worst-treated job fares worse than usual."""
    policies = {
        "fair-share": {"utilization": 0.8, "max_stretch": 4.0, "io_slowdown": 2.0},
        "harsh": {"utilization": 0.9, "max_stretch": 40.0, "io_slowdown": 3.0},
    }
    (tmp_path / "compared.json").write_text(
        json.dumps({"policies": policies, "files": [{"policies": policies}]})
    )
    pick = f"{sys.executable} {EXAMPLES}/darshan/pick.py < compared.json"
    assert "choice: fair-share\n" in run("sh", "-c", pick, folder=tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: slurmd runs jobs as their users")
def test_slurm_on_one_machine(tmp_path: Path) -> None:
    """Both jobs go through I/O nodes, whole; nothing is left running, or lying about."""
    script = EXAMPLES / "slurm/demo.py"
    output = run(sys.executable, script, folder=tmp_path)
    assert output.count("COMPLETED") == 2
    jobs = re.findall(r"^slurm-(\d)\.\d +\S+ +exit status 0 .* 96 MiB +0 B ", output, re.M)
    assert sorted(jobs) == ["1", "2"]
    assert "192 MiB forwarded, 0 B direct, 0 fail-opens" in output
    place = re.search(r"serve (/tmp/lab\S+)/data", output)
    assert place is not None
    assert not Path(place[1]).exists()
    left = subprocess.run(["pgrep", "-f", place[1]], capture_output=True, text=True, check=False)
    assert left.stdout == ""


def test_slurm_that_is_not_there_is_told(tmp_path: Path) -> None:
    """With no Slurm in PATH: what is missing, and which packages have it."""
    command = f"PATH=/nowhere exec {sys.executable} {EXAMPLES}/slurm/demo.py"
    output = run("sh", "-c", command, folder=tmp_path, check=False)
    assert "there is no munged, slurmctld, slurmd" in output
    assert "apt install munge" in output


def test_every_example_is_told_of() -> None:
    page = (EXAMPLES.parent / "docs/get-started/examples.md").read_text()
    named = [path.name for path in sorted(EXAMPLES.iterdir()) if path.name != "__pycache__"]
    assert [name for name in named if name not in page] == []
