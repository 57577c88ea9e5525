"""`make test`: what is run again, what counts at once, and what is written when all passed."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from failures import FOLDERS
from run import AT_MOST, Result, commit, run_tests, summary

TESTS = Path(__file__).parent
CONFTEST = """
import limits
limits.HANG = 1.0
import failures, schedule

def pytest_configure(config):
    config.pluginmanager.register(failures.Plugin())
    config.pluginmanager.register(schedule.Plugin())
"""
PLUGINS = ["-p", "no:cacheprovider", "-p", "xdist.plugin", "-p", "pytest_timeout"]
FIRST_TIME = """
from pathlib import Path

def is_first(name):
    path = Path(__file__).parent / f"{name}.ran"
    if path.exists():
        return False
    path.touch()
    return True
"""


class Suite:
    """A suite of a few tests, run as `make test` runs ours."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.add("conftest.py", CONFTEST)

    def add(self, path: str, text: str) -> None:
        file = self.root / "tests" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def run(self, *options: str) -> Result:
        return run_tests([*options, "tests"], self._pytest, self._pytest)

    def _pytest(self, arguments: Sequence[str], record: Path) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *PLUGINS, *arguments],
            cwd=self.root,
            env=os.environ
            | {
                "PENSTOCK_TEST_RECORD": str(record),
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "PYTHONPATH": str(TESTS),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


def test_all_that_pass(suite: Suite) -> None:
    suite.add("test_a.py", "def test_one(): pass\n\ndef test_two(): pass\n")
    assert suite.run() == Result(passed=True, counts={"passed": 2}, unsteady=[])


def test_what_passes_when_run_again_is_unsteady_and_both_outputs_are_shown(
    suite: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    suite.add(
        "test_a.py",
        f"{FIRST_TIME}\ndef test_one():\n    print('a word of the test')\n"
        "    assert not is_first('one'), 'busy machine'\n",
    )
    result = suite.run()
    assert (result.passed, result.unsteady) == (True, ["tests/test_a.py::test_one"])
    shown = capsys.readouterr().out
    first, second = shown.split("UNSTEADY tests/test_a.py::test_one")[1].split("--- and passed")
    assert "busy machine" in first
    assert "a word of the test" in first
    assert "1 passed" in second


@pytest.mark.parametrize("code", ["pytest.skip('no root')", "pytest.xfail('known')"])
def test_what_is_skipped_when_run_again_has_not_passed(suite: Suite, code: str) -> None:
    body = f"    assert not is_first('one')\n    {code}\n"
    suite.add("test_a.py", f"import pytest\n{FIRST_TIME}\ndef test_one():\n{body}")
    result = suite.run()
    assert (result.passed, result.unsteady) == (False, [])


def test_what_fails_again_fails_the_run(suite: Suite) -> None:
    suite.add("test_a.py", "def test_one(): assert False\n\ndef test_two(): pass\n")
    assert not suite.run().passed


def test_a_fixture_that_fails_once_is_unsteady(suite: Suite) -> None:
    suite.add(
        "test_a.py",
        f"import pytest\n{FIRST_TIME}\n@pytest.fixture\ndef site():\n"
        "    assert not is_first('site')\n\ndef test_one(site): pass\n",
    )
    assert suite.run().unsteady == ["tests/test_a.py::test_one"]


def test_the_folders_whose_first_failure_counts_have_tests() -> None:
    assert [name for name in FOLDERS if not list((TESTS / name).glob("test_*.py"))] == []


HELPERS = """
import hashlib

def check(left, right):
    assert left == right

def digest(data):
    return hashlib.sha256(data).hexdigest()
"""
RUN = "subprocess.run(['sh', '-c', {!r}], check=False)"


@pytest.mark.parametrize(
    ("reason", "path", "code"),
    [
        ("tests/chaos", "chaos/test_a.py", "assert False"),
        ("tests/native", "native/test_a.py", "assert False"),
        ("tests/parity", "parity/test_a.py", "assert False"),
        ("security", "test_security.py", "assert False"),
        ("wrong data", "test_a.py", "assert Path(__file__).read_bytes() == b'other'"),
        ("wrong data", "test_a.py", "raise failures.WrongData('block 3')"),
        ("wrong data", "test_a.py", "helpers.check(b'a', b'b')"),
        ("wrong data", "test_a.py", "assert (0, b'a') == (0, b'b')"),
        ("wrong data", "test_a.py", "assert [b'a', b'b'] == [b'a']"),
        ("wrong data", "test_a.py", "assert {'f': [b'a']} == {'f': [b'b']}"),
        ("wrong data", "test_a.py", "assert bytearray(b'a') == memoryview(b'b')"),
        ("wrong data", "test_a.py", "assert helpers.digest(b'a') == helpers.digest(b'b')"),
        ("wrong data", "test_a.py", "assert [helpers.digest(b'a')] == [helpers.digest(b'b')]"),
        ("wrong data", "test_a.py", "assert \"b'a' 5\\n\" == \"b'b' 5\\n\""),
        (
            "wrong data",
            "test_a.py",
            "subprocess.run([sys.executable, '-c', 'assert 0'], check=True)",
        ),
        ("crash", "test_a.py", "subprocess.run(['sh', '-c', 'kill -SEGV $$'], check=True)"),
        ("crash", "test_a.py", f"assert {RUN.format('kill -SEGV $$')}.returncode == 0"),
        ("crash", "test_a.py", f"helpers.check({RUN.format('kill -ABRT $$')}.returncode, 0)"),
        ("crash", "test_a.py", f"assert not {RUN.format('kill -BUS $$')}.returncode"),
        ("crash", "test_a.py", f"assert ({RUN.format('kill -ILL $$')}.returncode, '') == (0, '')"),
        ("crash", "test_a.py", f"assert {RUN.format('exit 139')}.returncode == 0"),
        ("crash", "test_a.py", f"assert {RUN.format('echo core   dumped >&2')} is None"),
        ("hang", "test_a.py", "time.sleep(60)"),
        ("hang", "test_a.py", "subprocess.run(['sleep', '60'], timeout=limits.HANG)"),
        ("hang", "test_a.py", "queue.Queue().get(timeout=limits.HANG)"),
        ("hang", "test_a.py", "assert threading.Event().wait(limits.HANG)"),
        ("hang", "test_a.py", "asyncio.run(asyncio.wait_for(asyncio.sleep(60), limits.HANG))"),
    ],
)
def test_the_first_failure_counts(
    suite: Suite, capsys: pytest.CaptureFixture[str], reason: str, path: str, code: str
) -> None:
    suite.add("live/helpers.py", HELPERS)
    modules = "asyncio, queue, subprocess, sys, threading, time, failures, limits, pytest"
    marks = "pytestmark = pytest.mark.security\n" if "security" in path else ""
    imports = f"import {modules}\nfrom live import helpers\n{marks}"
    body = f"    if is_first('one'):\n        {code}\n"
    suite.add(path, f"{imports}{FIRST_TIME}\ndef test_one():\n{body}")
    result = suite.run("-o", "timeout=3", "-o", "pythonpath=tests")
    assert (result.passed, result.unsteady) == (False, [])
    assert f"not run again: {reason}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "code",
    [
        "assert 5 == 4",
        "assert 139 == 140",
        "assert (1, b'a') == (0, b'a')",
        "assert '' == \"b'a'\"",
        "assert subprocess.run(['false']).returncode == 0",
        "assert subprocess.run(['sh', '-c', 'kill -TERM $$']).returncode == 0",
        "subprocess.run(['sleep', '60'], timeout=0.1)",
    ],
)
def test_what_a_busy_machine_may_have_caused_is_run_again(suite: Suite, code: str) -> None:
    body = f"    if is_first('one'):\n        {code}\n"
    suite.add("test_a.py", f"import subprocess\n{FIRST_TIME}\ndef test_one():\n{body}")
    assert suite.run().unsteady == ["tests/test_a.py::test_one"]


def test_a_long_test_with_a_limit_of_its_own_does_not_hang(suite: Suite) -> None:
    body = "    if is_first('one'):\n        time.sleep(limits.HANG)\n        assert False\n"
    imports = "import limits, pytest, time"
    mark = "@pytest.mark.timeout(60)"
    suite.add("test_a.py", f"{imports}\n{FIRST_TIME}\n{mark}\ndef test_one():\n{body}")
    assert suite.run().unsteady == ["tests/test_a.py::test_one"]


@pytest.mark.parametrize("answers", [True, False])
def test_a_page_that_shows_something_else_does_not_hang(suite: Suite, answers: bool) -> None:
    log = "Call log:\\n  - waiting for locator\\n"
    if answers:
        log += "    242 \u00d7 locator resolved to <input/>\\n"
    body = "    if is_first('one'):\n        time.sleep(limits.HANG)\n"
    body += f"        raise AssertionError('Locator expected to have Value\\n{log}')\n"
    suite.add("test_a.py", f"import limits, time\n{FIRST_TIME}\ndef test_one():\n{body}")
    assert suite.run().unsteady == ["tests/test_a.py::test_one"] * answers


def test_a_worker_that_crashes_counts(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    suite.add(
        "test_a.py",
        f"import os\n{FIRST_TIME}\ndef test_one():\n    if is_first('one'):\n        os.abort()\n",
    )
    assert not suite.run("-n", "1", "--dist", "loadfile").passed
    assert "not run again: crash\n" in capsys.readouterr().out


def test_reasons_come_from_workers(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    suite.add(
        "test_a.py",
        f"{FIRST_TIME}\ndef test_data():\n    assert not is_first('data') or b'a' == b'b'\n"
        "\ndef test_other():\n    assert not is_first('other')\n",
    )
    result = suite.run("-n", "1", "--dist", "loadfile")
    assert (result.passed, result.unsteady) == (False, ["tests/test_a.py::test_other"])
    assert "not run again: wrong data\n" in capsys.readouterr().out


def test_a_file_that_is_not_collected_fails_the_run(suite: Suite) -> None:
    suite.add("test_a.py", "import nothing_of_this_name\n")
    suite.add("test_b.py", "def test_one(): pass\n")
    assert not suite.run().passed


def test_when_very_many_fail_none_is_run_again(
    suite: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    many = AT_MOST + 1
    suite.add(
        "test_a.py",
        f"import pytest\n\n@pytest.mark.parametrize('k', range({many}))\n"
        "def test_one(k): assert False\n",
    )
    assert not suite.run().passed
    shown = capsys.readouterr().out
    assert f"{many} tests failed: none is run again" in shown
    assert "run again, alone" not in shown


def test_the_summary_begins_with_the_commit() -> None:
    result = Result(passed=True, counts={"passed": 3, "skipped": 1}, unsteady=["tests/a.py::b"])
    assert summary("a1b2c3", 61.2, result).splitlines() == [
        "a1b2c3",
        "time: 1 min 1 s",
        "tests: 3 passed, 1 skipped",
        "unsteady: 1",
        "tests/a.py::b",
    ]


def test_the_commit_says_whether_files_differ_from_it(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        author = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(
            ["git", *author, *words], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.strip()

    git("init", "--quiet")
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "--quiet", "-m", "a")
    assert commit(tmp_path) == git("rev-parse", "HEAD")
    (tmp_path / "file").write_text("2")
    assert commit(tmp_path) == git("rev-parse", "HEAD") + "-dirty"
    assert commit(tmp_path / "nowhere") == "unknown"
