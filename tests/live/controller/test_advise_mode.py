"""In advise mode nobody waits, and a job hears at its end what turns would have meant."""

import subprocess
import sys
from pathlib import Path

PENSTOCK = [sys.executable, "-m", "penstock.cli"]

TOGETHER = """
touch "$0.ready"
until [ -e "$1.ready" ]; do sleep 0.05; done
exec dd if=/dev/zero of="$0" bs=1M count=40
"""
"""On a busy machine one of two commands that are started at once may begin when the other ends."""


def test_two_jobs_at_once_hear_who_would_have_waited(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    state = ["--state", str(tmp_path / "s")]
    up = ["up", "--root", str(tmp_path / "data"), "--io-nodes", "1", "--mode", "advise"]
    up += ["--policy", "exclusive-fcfs", "--emulate", "targets=1,rate=20MiB/s"]
    subprocess.run([*PENSTOCK, *up, *state], check=True, timeout=60)
    try:
        jobs = [
            subprocess.Popen(
                [*PENSTOCK, "run", *state, "--", "sh", "-c", TOGETHER, name, other],
                cwd=tmp_path / "data",
                stderr=subprocess.PIPE,
                text=True,
            )
            for name, other in ("ab", "ba")
        ]
        outputs = [job.communicate(timeout=60)[1] for job in jobs]
        assert [job.returncode for job in jobs] == [0, 0]
    finally:
        subprocess.run([*PENSTOCK, "down", *state], check=True, timeout=60)
    first, second = sorted(outputs, key=lambda text: "would have waited" in text)
    assert "its 1 I/O phase would not have waited" in first
    assert "its 1 I/O phase would have waited" in second
