"""One check for every registered policy, and for any other: `penstock policies check`."""

from pathlib import Path

import pytest

from penstock import registry
from penstock.sim.evaluate.contract import check, unsaid_needs, warnings

REGISTERED = [(kind, name) for kind, table in registry.POLICIES.items() for name in table]


@pytest.mark.parametrize(("kind", "name"), REGISTERED)
def test_every_registered_policy_keeps_the_contract(kind: str, name: str) -> None:
    assert check(kind, name) == []


@pytest.mark.parametrize(("kind", "name"), REGISTERED)
def test_no_registered_policy_looks_impure(kind: str, name: str) -> None:
    assert warnings(kind, name) == []


def policy(tmp_path: Path, body: str) -> str:
    file = tmp_path / "mine.py"
    file.write_text(
        "import itertools, random, time\n"
        "from penstock.policies.base import ByArrival\n\n\n"
        "class Mine(ByArrival):\n"
        "    def group(self, job):\n        return 'all'\n\n" + body
    )
    return f"{file}:Mine"


def test_a_policy_that_reads_a_clock_is_found(tmp_path: Path) -> None:
    name = policy(
        tmp_path, "    def turn(self, request, view):\n        return time.perf_counter()\n"
    )
    assert "turn() answers the same question in different ways" in check("sharing", name)[0]


def test_a_policy_that_counts_its_calls_is_found(tmp_path: Path) -> None:
    """The engine calls turn() only where a key matters; the controller calls it always."""
    body = (
        "    def __init__(self):\n        self._calls = itertools.count()\n\n"
        "    def observe(self, event, view):\n        return None\n\n"
        "    def turn(self, request, view):\n        return next(self._calls) % 2\n"
    )
    problems = check("sharing", policy(tmp_path, body))
    assert any("simulator and controller decide differently" in each for each in problems)


@pytest.mark.parametrize(
    ("read", "need"),
    [
        ("view.progress(request.job)", "progress"),
        ("view.remaining(request)", "remaining"),
        ("request.io or 0.0", "io or remaining"),
        ("request.job.w_iter or 0.0", "w_iter"),
        ("view.work_left(request.job)", "work"),
    ],
)
def test_a_policy_says_what_it_must_know(tmp_path: Path, read: str, need: str) -> None:
    name = policy(tmp_path, f"    def turn(self, request, view):\n        return {read}\n")
    assert any(each.endswith(f"its needs do not have {need}") for each in check("sharing", name))


def test_an_exception_is_told(tmp_path: Path) -> None:
    body = "    def turn(self, request, view):\n        return 1.0 / (view.now - view.now)\n"
    problems = check("sharing", policy(tmp_path, body))
    assert "ZeroDivisionError" in problems[0]


TURN = "    def turn(self, request, view):\n"
OBSERVE = "    def observe(self, event, view):\n"


@pytest.mark.parametrize(
    ("body", "method"),
    [
        (TURN + "        raise SystemExit\n", "turn"),
        (TURN + "        exit()\n", "turn"),
        (OBSERVE + "        raise SystemExit('no more')\n", "observe"),
        ("    def weight(self, job):\n        raise SystemExit(0)\n", "weight"),
        (TURN + "        raise GeneratorExit\n", "turn"),
    ],
)
def test_a_policy_that_ends_the_program_is_at_fault(tmp_path: Path, body: str, method: str) -> None:
    """SystemExit is no Exception: it ended the tool, with the status of success."""
    problems = check("sharing", policy(tmp_path, body))
    assert f"{method}() of policy Mine raised" in problems[0]
    assert "must not end the program" in problems[0]


@pytest.mark.parametrize(
    ("kind", "methods"),
    [
        ("allocation", "    def allocate(self, view):\n"),
        ("placement", "    def place(self, view, counts, staying):\n"),
        ("packing", "    def pack(self, jobs, site):\n"),
    ],
)
def test_so_is_one_of_another_kind(tmp_path: Path, kind: str, methods: str) -> None:
    file = tmp_path / "mine.py"
    attributes = "    needs = frozenset()\n    sticky = False\n"
    if kind == "packing":
        attributes = "    needs = frozenset()\n"
    file.write_text("class Mine:\n" + attributes + methods + "        raise SystemExit(0)\n")
    assert "SystemExit" in check(kind, f"{file}:Mine")[0]


def test_unsaid_needs_of_one_that_ends_the_program(tmp_path: Path) -> None:
    name = policy(tmp_path, TURN + "        raise SystemExit\n")
    assert "SystemExit" in unsaid_needs(name)[0]


@pytest.mark.parametrize(
    "change",
    [
        "view.now = 0.0",
        "view.jobs.clear()",
        "view.jobs[request.job.id] = None",
        "view.site.resources = 7",
        "request.arrival = 0.0",
        "request.job.w_iter = 1.0",
        "request.job.hints['profile'] = 1.0",
    ],
)
@pytest.mark.parametrize("observes", [True, False])
def test_jobs_and_view_cannot_be_changed(tmp_path: Path, change: str, observes: bool) -> None:
    """In the reference the view was the clock itself, and a policy could set the time."""
    body = TURN + f"        {change}\n        return 0.0\n"
    if observes:
        body += OBSERVE + "        return None\n"
    problems = check("sharing", policy(tmp_path, body))
    assert "Error" in problems[0]


@pytest.mark.parametrize("observes", [True, False])
def test_nor_behind_their_backs(tmp_path: Path, observes: bool) -> None:
    body = TURN + "        object.__setattr__(request.job, 'user', 'me')\n        return 0.0\n"
    if observes:
        body += OBSERVE + "        return None\n"
    problems = check("sharing", policy(tmp_path, body))
    assert "turn() changes the job or the request that it is shown" in problems


def test_jobs_in_another_order_of_the_list_are_decided_alike(tmp_path: Path) -> None:
    """A set numbered in the order in which jobs were first seen gives the first one its weight."""
    body = (
        "    def __init__(self):\n        self._seen = {}\n\n"
        "    def weight(self, job):\n"
        "        return 1.0 + self._seen.setdefault(job.id, len(self._seen))\n"
    )
    name = policy(tmp_path, body)
    file = tmp_path / "mine.py"
    file.write_text(file.read_text().replace("return 'all'", "return job.id"))
    problem = "the same jobs in another order of the list are decided differently"
    assert problem in check("sharing", name)


def test_one_that_goes_by_position_says_so_by_reading_it(tmp_path: Path) -> None:
    name = policy(tmp_path, TURN + "        return request.job.serial\n")
    assert check("sharing", name) == []


def test_imports_of_what_is_impure_are_warnings(tmp_path: Path) -> None:
    name = policy(tmp_path, TURN + "        return 0.0 if open else 1.0\n")
    lines = warnings("sharing", name)
    assert [each.split(";")[0] for each in lines] == [
        "line 1: import of random",
        "line 1: import of time",
        "line 10: open",
    ]
    assert check("sharing", name) == []
