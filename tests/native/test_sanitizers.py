"""The native parts' own tests, built and run under each sanitizer.

Builds stay in build/sanitized: what has not changed since is not built again.
"""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILDS = ROOT / "build" / "sanitized"
PROGRAMS = [
    ("engine", "engine_test"),
    ("allocation", "knapsack_test"),
    ("ionode", "schedulers_test"),
    ("ionode", "permits_test"),
    ("ionode", "rounds_test"),
    ("ionode", "strangers_test"),
    ("ionode", "hmac_test"),
    ("ionode", "node_test"),
]
STRICT = {"UBSAN_OPTIONS": "halt_on_error=1", "TSAN_OPTIONS": "halt_on_error=1"}


@pytest.mark.timeout(2400)  # all native code is built
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_native_parts_under_sanitizer(sanitizer: str) -> None:
    build = BUILDS / sanitizer.replace(",", "-")
    configure = ["cmake", "-S", str(ROOT), "-B", str(build), "-G", "Ninja", "-DPENSTOCK_WERROR=ON"]
    subprocess.run([*configure, f"-DPENSTOCK_SANITIZE={sanitizer}"], check=True)
    subprocess.run(["cmake", "--build", build], check=True)
    for folder, program in PROGRAMS:
        result = subprocess.run(
            # TSan cannot place its shadow memory under some kernels' address randomisation.
            ["setarch", "-R", build / "native" / folder / program],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | STRICT,
        )
        assert result.returncode == 0, result.stderr
        assert result.stdout == f"{program.removesuffix('_test')}: all hold\n"
