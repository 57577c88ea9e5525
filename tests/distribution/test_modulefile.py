"""The module file is one that environment-modules loads, and leaves users their own Python."""

import subprocess
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "deploy/modulefiles"
INIT = "/usr/share/modules/init/sh"


def test_it_puts_penstock_behind_all_else_and_takes_it_away_again() -> None:
    script = (
        f". {INIT} && module use {FOLDER} && module load penstock && echo $PATH && "
        "module unload penstock && echo $PATH && module whatis penstock"
    )
    done = subprocess.run(
        ["sh", "-c", script],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded, unloaded, *_ = done.stdout.splitlines()
    assert loaded == "/usr/bin:/bin:/opt/penstock/bin"
    assert unloaded == "/usr/bin:/bin"
    assert "who may do I/O now" in done.stdout + done.stderr
