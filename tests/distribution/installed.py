"""Uses an installed penstock as a new user does; the standard library is all it takes.

    python installed.py

A workload is simulated; then a program runs as a job whose writes go through an I/O node, with the
library that comes with the package. Ends with status 0 and a line of JSON if all of it is so.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

WRITTEN = 8 << 20
WITHIN = 800.0


def penstock(*words: str) -> str:
    program = Path(sys.executable).with_name("penstock")
    done = subprocess.run(
        [program, *words], capture_output=True, text=True, timeout=WITHIN, check=False
    )
    if done.returncode:
        sys.exit(f"penstock {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def simulated() -> Any:
    penstock("generate", "io-sets", "--out", "jobs.json")
    return json.loads(penstock("simulate", "jobs.json", "--policy", "set-10", "--json"))


def forwarded() -> Any:
    """Run dd as a job; return what the I/O nodes moved of what it wrote."""
    Path("data").mkdir()
    penstock("up", "--root", "data", "--io-nodes", "2", "--state", "state")
    try:
        write = ("dd", "if=/dev/zero", "of=data/file", "bs=1M", f"count={WRITTEN >> 20}")
        penstock("run", "--state", "state", "--", *write, "conv=fsync")
        (job,) = json.loads(penstock("status", "--state", "state", "--json"))["jobs"]
    finally:
        penstock("down", "--state", "state")
    if Path("data/file").read_bytes() != bytes(WRITTEN):
        sys.exit("the file is not what was written")
    return job["forwarded_bytes"]


def main() -> None:
    spec = importlib.util.find_spec("penstock")
    if spec is None or spec.origin is None:
        sys.exit("penstock is not installed")
    with tempfile.TemporaryDirectory(prefix="ps") as folder:
        os.chdir(folder)
        report = {
            "package": spec.origin,
            "user": os.getuid(),
            "simulated": simulated(),
            "forwarded": forwarded(),
        }
        os.chdir("/")
    if report["forwarded"] != WRITTEN:
        sys.exit(f"{report['forwarded']} of {WRITTEN} bytes went through the I/O nodes")
    print(json.dumps(report))


if __name__ == "__main__":
    main()
