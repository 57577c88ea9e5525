"""Which failures count at once, and which are run again, alone, before they count.

A busy machine can fail a test that has nothing wrong with it. It cannot make data wrong, crash a
process or hang one for ever, and some tests look for faults that show only now and then: there the
first failure counts. `tests/run.py` reads the record that is written here.
"""

import os
import re
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

RECORD = "PENSTOCK_TEST_RECORD"
"""Environment variable: the file that gets the record of a run."""
FOLDERS = ("chaos", "native", "parity", "security")
"""Folders of tests whose faults show only now and then."""
REASON = "first failure counts"
_CRASH = re.compile(
    r"SIG(SEGV|ABRT|BUS|ILL|FPE)\b|Segmentation fault|core dumped|(Address|Thread|Leak)Sanitizer"
    r"|runtime error:|Fatal Python error"
)
_ITEM = pytest.StashKey[bool]()


class WrongData(AssertionError):  # noqa: N818 - it says what is wrong
    """Data is not what was written: never the machine's fault."""


class Failure(msgspec.Struct, frozen=True):
    """One failure of one test."""

    test: str
    reason: str | None
    """Why it counts at once; None: the test is run again."""
    output: str


class Record(msgspec.Struct, frozen=True):
    """A run's outcomes by number, and its failures."""

    counts: dict[str, int]
    failures: list[Failure]


def read(path: Path) -> Record:
    """Read the record of a run."""
    return msgspec.json.decode(path.read_bytes(), type=Record)


def reason_of(test: str, error: BaseException, text: str, *, wrong_data: bool) -> str | None:
    """Say why the first failure of a test counts, or None if a second run decides."""
    folder = re.match(r"(?:.*/)?tests/(\w+)/", test)
    if folder and folder[1] in FOLDERS:
        return f"tests/{folder[1]}"
    if wrong_data or isinstance(error, WrongData):
        return "wrong data"
    if isinstance(error, pytest.fail.Exception) and str(error).startswith("Timeout (>"):
        return "hang"
    return "crash" if _CRASH.search(text) else None


class Plugin:
    """Notes of every failed test whether its first failure counts, and records the run."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._failures: dict[str, Failure] = {}
        self._running: pytest.Item | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._running = item
        try:
            return (yield)
        finally:
            self._running = None

    def pytest_assertrepr_compare(self, op: str, left: object, right: object) -> None:
        """See a comparison of bytes that failed: wrong data, wherever it is."""
        if self._running and op == "==" and isinstance(left, bytes) and isinstance(right, bytes):
            self._running.stash[_ITEM] = True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed and call.excinfo is not None:
            reason = reason_of(
                item.nodeid,
                call.excinfo.value,
                report.longreprtext,
                wrong_data=item.stash.get(_ITEM, False),
            )
            report.user_properties.append((REASON, reason))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or (report.when == "setup" and report.skipped):
            self._counts[report.outcome] += 1
        if report.failed:
            # A worker that died says nothing of a reason: it crashed, and its test with it.
            reason = dict(report.user_properties).get(REASON, "crash")
            self._add(report.nodeid, reason, report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._add(report.nodeid, "not collected", report)

    def _add(
        self, test: str, reason: Any, report: pytest.TestReport | pytest.CollectReport
    ) -> None:
        before = self._failures.get(test)
        sections = "".join(f"\n--- {name} ---\n{text}" for name, text in report.sections)
        output = f"{report.longreprtext}{sections}\n"
        if before is not None:
            reason, output = before.reason or reason, before.output + output
        self._failures[test] = Failure(test, reason, output)

    def pytest_sessionfinish(self) -> None:
        if path := os.environ.get(RECORD):
            record = Record(dict(self._counts), list(self._failures.values()))
            Path(path).write_bytes(msgspec.json.encode(record))
