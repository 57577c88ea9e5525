"""Which failures count at once, and which are run again, alone, before they count.

A busy machine can fail a test that has nothing wrong with it. It cannot make data wrong, crash a
process or hang one for ever, and some tests look for faults that show only now and then: there the
first failure counts. `tests/run.py` reads the record that is written here.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

import limits
import msgspec
import pytest

RECORD = "PENSTOCK_TEST_RECORD"
"""Environment variable: the file that gets the record of a run."""
FOLDERS = ("chaos", "native", "parity")
"""Folders of tests whose faults show only now and then."""
SECURITY = "security"
"""Mark of tests that somebody else cannot read, change or pretend something."""
REASON = "first failure counts"
_CRASH = re.compile(
    r"SIG(SEGV|ABRT|BUS|ILL|FPE)\b|Segmentation fault|core dumped|(Address|Thread|Leak)Sanitizer"
    r"|runtime error:|Fatal Python error"
    # The exit status of a process that one of these signals ended, and of a shell that saw it.
    r"|^E .*\bassert\b.*(?<![\w.])-(4|6|7|8|11)(?![\w.])"
    r"|^E .*(\bassert (not )?\(?|where |returncode=|exit status )(132|134|135|136|139)"
    r"( == 0| = .*(returncode|wait|status)|, |\.?$)",
    re.MULTILINE,
)
_PROGRAM_FAILED = re.compile(r"^AssertionError|^verify: bad|verify failed", re.MULTILINE)
"""What a program prints that has compared its own data; fio does the latter."""
_DATA = re.compile(r"\b[0-9a-f]{32,128}\b|\bb(?:'[^']*'|\"[^\"]*\")")
"""Data as text: a digest, or bytes as Python shows them."""
_BYTES = (bytes, bytearray, memoryview)
_PAGE_ANSWERED = re.compile(r"^\s*(- )?\d+ \W locator resolved to ", re.MULTILINE)
"""What Playwright says of an element that it found, again and again, in another state."""
_WRONG_DATA = pytest.StashKey[bool]()


class WrongData(AssertionError):  # noqa: N818 - it says what is wrong
    """Data is not what was written: never the machine's fault."""


@contextmanager
def checking_data() -> Iterator[None]:
    """Check data by assertions of any kind: of arrays, of text, of sizes."""
    try:
        yield
    except AssertionError as error:
        raise WrongData(str(error)) from error


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


def data_differs(left: object, right: object) -> bool:
    """Say whether data differs, wherever it is in what a test compares."""
    if isinstance(left, _BYTES) or isinstance(right, _BYTES):
        return not (isinstance(left, _BYTES) and isinstance(right, _BYTES) and left == right)
    match left, right:
        case str(), str():
            values = _DATA.findall(left), _DATA.findall(right)
            return all(values) and values[0] != values[1]
        case Mapping(), Mapping():
            return any(data_differs(left.get(key), right.get(key)) for key in {*left, *right})
        case (list() | tuple(), list() | tuple()):
            return any(data_differs(*pair) for pair in zip_longest(left, right))
    return False


def reason_of(item: pytest.Item, error: BaseException, report: pytest.TestReport) -> str | None:
    """Say why the first failure of a test counts, or None if a second run decides."""
    folder = re.match(r"(?:.*/)?tests/(\w+)/", item.nodeid)
    if folder and folder[1] in FOLDERS:
        return f"tests/{folder[1]}"
    if item.get_closest_marker(SECURITY):
        return SECURITY
    streams = (getattr(error, name, None) for name in ("stdout", "stderr"))
    printed = [text for _, text in report.sections] + [
        text.decode(errors="replace") if isinstance(text, bytes) else str(text) for text in streams
    ]
    if _CRASH.search("\n".join([report.longreprtext, *printed])):
        return "crash"
    if (
        isinstance(error, WrongData)
        or item.stash.get(_WRONG_DATA, False)
        or _PROGRAM_FAILED.search("\n".join(printed))
    ):
        return "wrong data"
    return "hang" if _hangs(item, error, report) else None


def _hangs(item: pytest.Item, error: BaseException, report: pytest.TestReport) -> bool:
    """Say whether pytest's limit or one named HANG has passed.

    No test takes as long as HANG but those with a limit of their own, and those that look at a
    page until HANG: a page that answers all the time and shows something else does not hang.
    """
    if isinstance(error, AssertionError) and _PAGE_ANSWERED.search(str(error)):
        return False
    if isinstance(error, TimeoutExpired) and error.timeout >= limits.HANG:
        return True
    if isinstance(error, pytest.fail.Exception) and str(error).startswith("Timeout (>"):
        return True
    return report.duration >= limits.HANG and not item.get_closest_marker("timeout")


class Plugin:
    """Notes of every failed test whether its first failure counts, and records the run."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._failures: dict[str, Failure] = {}
        self._running: pytest.Item | None = None
        # Comparisons in modules that tests share are seen, too.
        names = {path.stem for path in Path(__file__).parent.iterdir()}
        pytest.register_assert_rewrite(*sorted(names - sys.modules.keys()))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._running = item
        try:
            return (yield)
        finally:
            self._running = None

    def pytest_assertrepr_compare(self, op: str, left: object, right: object) -> None:
        """See a comparison of data that failed."""
        if self._running and op == "==" and data_differs(left, right):
            self._running.stash[_WRONG_DATA] = True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed and call.excinfo is not None:
            reason = reason_of(item, call.excinfo.value, report)
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
