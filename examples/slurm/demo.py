#!/usr/bin/env python3
"""A Slurm cluster on one machine, whose jobs Penstock manages. As root:

    python3 examples/slurm/demo.py

Starts munge, slurmctld and four slurmd, a controller with two I/O nodes for all users, and the
node's agent; submits two jobs as a user; shows them in Slurm and in Penstock; stops everything.
It does not touch an installed Slurm: it uses its own ports, sockets and files.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from one_host import Cluster, install_hooks

PATIENT = ("HOOK_SECONDS=8", "PENSTOCK_PATIENCE=5")
"""On a busy laptop a hook may take longer than a site would allow."""
JOB = """#!/bin/sh
#SBATCH --nodes=2 --ntasks-per-node=1
srun sh -c 'for k in 1 2 3; do
    dd if=/dev/zero of=DATA/$SLURM_JOB_ID.$SLURM_PROCID bs=1M count=16 conv=fsync status=none
    sleep 0.5
done'
"""
NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "setpriv")
ENDS_WITHIN = 60.0


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--user", default="nobody", help="the user of the jobs")
    parser.add_argument(
        "--keep", action="store_true", help="keep everything running until Enter is pressed"
    )
    options = parser.parse_args()
    check()
    penstock = [sys.executable, "-P", "-m", "penstock.cli"]
    # A short path, because of the sockets, that every user can access.
    with tempfile.TemporaryDirectory(prefix="lab", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "data").mkdir()
        (folder / "data").chmod(0o1777)
        (folder / "slurm").mkdir()
        settings = install_hooks(folder / "hooks", folder / "run", *PATIENT, penstock=penstock)
        say("Penstock: a controller and two I/O nodes, set-10, enforced")
        with deployed(penstock, folder), Cluster(folder / "slurm", settings=settings) as slurm:
            say("Slurm: four nodes on this host")
            print(slurm.command("sinfo").stdout, end="")
            script = JOB.replace("DATA", str(folder / "data"))
            jobs = [slurm.sbatch(script, user=options.user) for _ in range(2)]
            say(f"Jobs {jobs[0]} and {jobs[1]}, as {options.user}")
            print(slurm.command("squeue").stdout, end="")
            for job in jobs:
                print(f"job {job}: {slurm.await_end(job, ENDS_WITHIN)}")
            say("The jobs in Penstock")
            await_release(penstock, folder)
            subprocess.run([*penstock, "status", "--state", folder / "state"], check=True)
            if options.keep:
                print(f"\nSLURM_CONF={slurm.conf}; penstock status --state {folder}/state")
                input("Press Enter to stop everything: ")
        say("Down")


def say(what: str) -> None:
    """Print a heading."""
    print(f"\n== {what}", flush=True)


def check() -> None:
    """Exit if a program or the right to run this is missing."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        packages = "munge slurmctld slurmd slurm-client"
        sys.exit(f"demo.py: there is no {', '.join(missing)}; on Debian: apt install {packages}")
    if os.geteuid() != 0:
        sys.exit("demo.py: run this as root, because slurmd runs jobs as their users")


@contextlib.contextmanager
def deployed(penstock: list[str], folder: Path) -> Iterator[None]:
    """Bring a controller, its I/O nodes and this node's agent up, and down again."""
    state = ["--state", str(folder / "state")]
    up = ["--root", str(folder / "data"), "--io-nodes", "2", "--all-users"]
    up += ["--policy", "set-10", "--mode", "enforce"]
    subprocess.run([*penstock, "up", *state, *up], check=True)
    try:
        with (folder / "agent.log").open("wb") as log:
            command = [*penstock, "agent", *state, "--run", str(folder / "run")]
            agent = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        assert agent.stdout is not None
        try:
            if not agent.stdout.readline():  # its first line: it serves
                sys.exit(f"demo.py: the agent ended\n{(folder / 'agent.log').read_text()}")
            yield
        finally:
            agent.terminate()
            agent.wait(ENDS_WITHIN)
            agent.stdout.close()
    finally:
        subprocess.run([*penstock, "down", *state], check=True)


def await_release(penstock: list[str], folder: Path) -> None:
    """Wait until the controller knows, from the epilogs, that the jobs have ended."""
    until = time.monotonic() + ENDS_WITHIN
    command = [*penstock, "status", "--json", "--state", str(folder / "state")]
    while time.monotonic() < until:
        options = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        if all(job["state"] != "running" for job in options["jobs"]):
            return
        time.sleep(0.2)
    sys.exit("demo.py: the controller still lists a job that has ended")


if __name__ == "__main__":
    main()
