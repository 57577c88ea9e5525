"""Benchmarks are run by hand; mypy and these tests find those that a change has broken."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RIVALS = ("simpy", "ortools")
"""Packages that `make bench` alone installs: mypy checks the programs that import them."""
PROGRAMS = sorted(
    path
    for path in BENCHMARKS.glob("*.py")
    if "argparse.ArgumentParser" in (text := path.read_text())
    and not any(rival in text for rival in RIVALS)
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_benchmark_loads_and_explains_itself(program: Path) -> None:
    command = [sys.executable, str(program), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "usage:" in done.stdout


def test_make_bench_names_programs_that_exist() -> None:
    makefile = (BENCHMARKS.parent / "Makefile").read_text()
    named = {word for word in makefile.split() if word.startswith("benchmarks/") and ".py" in word}
    assert named
    assert not [name for name in named if not (BENCHMARKS.parent / name).exists()]


@pytest.mark.parametrize("program", ["bare_server", "client", "copies"])
def test_the_programs_of_the_forwarding_benchmark_compile(program: str) -> None:
    source = BENCHMARKS / "forwarding" / f"{program}.cpp"
    command = ["c++", "-std=c++20", "-fsyntax-only", "-pthread", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
