"""Runs every check and test: what `make test` does.

    python tests/run.py [PYTEST ARGUMENTS]

A test that fails is run once more, alone, at the end. If it passes then, it is unsteady: it is
listed with the output of both runs, and does not fail the whole. `failures.py` says where the first
failure counts. `out/passed` says which commit passed, and is there only if it did.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import failures

ROOT = Path(__file__).parents[1]
PASSED = ROOT / "out" / "passed"
AT_MOST = 20
"""If more tests than this fail, something is broken, and none is run again."""
WORKERS = (os.cpu_count() or 1) + 2
"""Many tests wait for something most of their time."""
TESTS_FAILED = 1
"""Pytest's exit status for a run that was complete, and in which tests failed."""

Runner = Callable[[Sequence[str], Path], tuple[int, str]]
"""Runs pytest with arguments, and a file for its record: exit status, and captured output."""


@dataclass
class Result:
    """What came of all tests."""

    passed: bool
    counts: dict[str, int] = field(default_factory=dict)
    unsteady: list[str] = field(default_factory=list)


def run_tests(arguments: Sequence[str], run: Runner, run_alone: Runner) -> Result:
    """Run all tests, and those that failed once more, alone."""
    with tempfile.TemporaryDirectory(prefix="penstock-tests") as folder:
        path = Path(folder) / "record"
        status, _ = run(arguments, path)
        if status not in (0, TESTS_FAILED) or not path.exists():
            return Result(passed=False)
        record = failures.read(path)
        # Without a failure on record, a run that failed was stopped by something else.
        result = Result(passed=status == 0 or bool(record.failures), counts=record.counts)
        if len(record.failures) > AT_MOST:
            print(f"{len(record.failures)} tests failed: none is run again")
            result.passed = False
            return result
        for failure in record.failures:
            if failure.reason is not None:
                print(f"\nFAILED {failure.test}\n  not run again: {failure.reason}")
                result.passed = False
                continue
            print(f"\nrun again, alone: {failure.test}", flush=True)
            path.unlink()
            status, output = run_alone([failure.test], path)
            if status == 0 and set(failures.read(path).counts) == {"passed"}:
                result.unsteady.append(failure.test)
                show_unsteady(failure, output)
            else:
                print(f"\nFAILED {failure.test}\n  it did not pass then:\n{output}")
                result.passed = False
    return result


def show_unsteady(failure: failures.Failure, output: str) -> None:
    """Print both outputs of a test that failed, and passed when it was run alone."""
    print(f"\nUNSTEADY {failure.test}\n--- it failed ---\n{failure.output}")
    print(f"--- and passed when it was run alone ---\n{output}", flush=True)


def run_pytest(arguments: Sequence[str], record: Path) -> tuple[int, str]:
    """Run pytest for all to see."""
    command = [sys.executable, "-m", "pytest", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment(record), check=False)
    return done.returncode, ""


def run_pytest_alone(arguments: Sequence[str], record: Path) -> tuple[int, str]:
    """Run pytest and return its output."""
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-rA", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(record), capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def environment(record: Path) -> dict[str, str]:
    """Return this environment, with a place for a run's record.

    Workers use all cores already: threads of the algebra's own would only wait for each other.
    """
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return os.environ | threads | {failures.RECORD: str(record)}


def commit(root: Path = ROOT) -> str:
    """Return the commit that is checked out, with -dirty if files differ from it."""

    def git(*words: str) -> str:
        # A checkout may be another user's: CI's is.
        command = ["git", "-c", f"safe.directory={root}", "-C", str(root), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("-dirty" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def summary(of: str, seconds: float, result: Result) -> str:
    """Return what `out/passed` says: the commit, the time, the counts and the unsteady tests."""
    minutes, rest = divmod(round(seconds), 60)
    numbers = [result.counts.get(outcome, 0) for outcome in ("passed", "skipped")]
    lines = [of, f"time: {minutes} min {rest} s", "tests: {} passed, {} skipped".format(*numbers)]
    lines.append(f"unsteady: {len(result.unsteady)}")
    return "\n".join(lines + result.unsteady) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Run all; return the exit status."""
    began, before = time.monotonic(), commit()
    PASSED.parent.mkdir(exist_ok=True)
    PASSED.unlink(missing_ok=True)
    if subprocess.run(["make", "--no-print-directory", "lint"], cwd=ROOT, check=False).returncode:
        return 1
    options = ["-n", str(WORKERS), "--dist", "loadfile", "-m", "not rates", *arguments]
    result = run_tests(options, run_pytest, run_pytest_alone)
    if not result.passed:
        return 1
    after = commit()
    of = before if before == after or before.endswith("-dirty") else f"{before}-dirty"
    text = summary(of, time.monotonic() - began, result)
    PASSED.write_text(text)
    print(f"\npassed\n{text}", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
