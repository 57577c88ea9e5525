"""The native parts' own tests, built and run under each sanitizer."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


PROGRAMS = [
    ("engine", "engine_test"),
    ("allocation", "knapsack_test"),
    ("ionode", "schedulers_test"),
    ("ionode", "node_test"),
]


@pytest.mark.timeout(1200)  # all native code is built
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_native_parts_under_sanitizer(sanitizer: str, tmp_path: Path) -> None:
    configure = ["cmake", "-S", ROOT, "-B", tmp_path, "-DPENSTOCK_WERROR=ON"]
    subprocess.run([*configure, f"-DPENSTOCK_SANITIZE={sanitizer}"], check=True, timeout=120)
    subprocess.run(["cmake", "--build", tmp_path, "-j2"], check=True, timeout=900)
    strict = {"UBSAN_OPTIONS": "halt_on_error=1", "TSAN_OPTIONS": "halt_on_error=1"}
    for folder, program in PROGRAMS:
        result = subprocess.run(
            # TSan cannot place its shadow memory under some kernels' address randomisation.
            ["setarch", "-R", tmp_path / "native" / folder / program],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env=os.environ | strict,
        )
        assert result.returncode == 0, result.stderr
        assert result.stdout == f"{program.removesuffix('_test')}: all hold\n"
