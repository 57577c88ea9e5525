"""penstock policies: every policy can be found and understood."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock import registry
from penstock.sim.evaluate.contract_process import check_within


def test_every_policy_has_a_line(penstock: Any) -> None:
    entries = penstock("policies", "--json").json
    known = [(kind, name) for kind in registry.POLICIES for name in sorted(registry.table(kind))]
    assert [(e["kind"], e["name"]) for e in entries] == known
    for entry in entries:
        assert entry["summary"]
        assert not entry["summary"].startswith(entry["name"])
    table = penstock("policies").out
    assert all(entry["name"] in table for entry in entries)


def test_published_policies_and_our_own_are_listed_apart(penstock: Any) -> None:
    out = penstock("policies", "--kind", "sharing").out
    published, own = out.split("sharing policies, Penstock's own")
    assert "sharing policies, published in a paper" in published
    names = {"published": published, "penstock": own}
    for entry in penstock("policies", "--kind", "sharing", "--json").json:
        assert f"\n{entry['name']} " in names[entry["origin"]]
    assert "from     Penstock's own" in penstock("policies", "fair-finish").out


@pytest.mark.parametrize("kind", registry.POLICIES)
def test_a_published_policy_names_its_paper(penstock: Any, kind: str) -> None:
    entries = penstock("policies", "--kind", kind, "--json").json
    source = re.compile(r"([Pp]aper|[Tt]hesis) \w|Benoit")
    for entry in entries:
        if entry["origin"] == "published":
            assert source.search(" ".join(entry["description"].split())), entry["name"]
    assert registry.OURS[kind] <= {entry["name"] for entry in entries}


def test_whether_a_policy_runs_live(penstock: Any) -> None:
    live = {e["name"]: e["live"] for e in penstock("policies", "--json").json}
    assert (live["set-10"], live["clairvoyant-sets"], live["first-fit"]) == (True, False, False)
    assert "live     yes, learnt" in penstock("policies", "set-10").out
    assert (live["search"], live["oracle"], live["mckp"]) == (False, False, True)
    assert "live     no: it gives jobs more" in penstock("policies", "oracle").out


def test_one_policy_with_its_options(penstock: Any) -> None:
    entry = penstock("policies", "set-10", "--json").json
    assert (entry["kind"], entry["needs"], entry["options"]) == (
        "sharing",
        ["w_iter"],
        {"unknown": 5},
    )
    out = penstock("policies", "set-10").out
    assert "round(log10 w_iter)" in out
    assert "options  unknown=5" in out


def test_a_policy_of_another_kind(penstock: Any) -> None:
    assert penstock("policies", "mckp", "--json").json["kind"] == "allocation"
    assert penstock("policies", "random", "--kind", "placement", "--json").json["kind"] == (
        "placement"
    )


def test_a_policy_in_a_file(penstock: Any, directory: Path) -> None:
    (directory / "mine.py").write_text(
        '"""mine: by user."""\n'
        "from penstock.policies.base import ByArrival\n"
        "class Mine(ByArrival):\n"
        "    def __init__(self, *, must_have, may_have=1): pass\n"
        "    def group(self, job): return job.user\n"
    )
    entry = json.loads(penstock("policies", "./mine.py:Mine", "--json").out)
    assert entry["summary"] == "mine: by user."
    assert entry["options"] == {"must-have": "required", "may-have": 1}
    assert "from     files and other packages" in penstock("policies", "./mine.py:Mine").out


def policy_file(directory: Path, body: str) -> str:
    text = "from penstock.policies.base import ByArrival\n\n\nclass Mine(ByArrival):\n"
    (directory / "mine.py").write_text(text + body)
    return "mine.py:Mine"


GROUP = "    def group(self, job):\n        return 'all'\n"
TURN = GROUP + "    def turn(self, request, view):\n"


def test_a_policy_that_keeps_the_contract(penstock: Any, directory: Path) -> None:
    name = policy_file(directory, GROUP)
    assert "keeps the contract of " in penstock("policies", "check", name).out
    result = penstock("policies", "check", name, "--json").json
    assert result == {"name": name, "kind": "sharing", "problems": [], "warnings": []}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (GROUP + "    def trun(self, request, view):\n        return 1\n", "did you mean 'turn'?"),
        (GROUP + "    needs = frozenset({'w_iters'})\n", "needs 'w_iters' is unknown"),
        (GROUP + "    preemptive = 'yes'\n", "preemptive is 'yes'; give True or False"),
        (GROUP + "    order = 'shortest-io'\n", "nothing reads 'order': write turn()"),
        (GROUP + "    places = 2**31\n", "places is 2147483648; give 1 to 2147483647"),
        ("    pass\n", "it has no method group()"),
        ("    def group(self):\n        return 1\n", "must take (job) or (job, view)"),
        (TURN + "        return view.progress(request.job)\n", "it reads view.progress"),
        (TURN + "        return 'first'\n", "turn() returned 'first'; it must be a number"),
        ("    def group(self, job)\n", "cannot be loaded: line 5, SyntaxError"),
        (TURN + "        raise KeyboardInterrupt\n", "KeyboardInterrupt in turn() of policy Mine"),
        ("    def group(self, job):\n        return {job.id}\n", "or a tuple of these"),
    ],
)
def test_what_is_wrong_with_a_policy_is_said(
    penstock: Any, directory: Path, body: str, message: str
) -> None:
    failed = penstock("policies", "check", policy_file(directory, body))
    assert failed.status == 2
    assert message in failed.err
    assert "Traceback" not in failed.err


def test_which_class(penstock: Any, directory: Path) -> None:
    policy_file(directory, GROUP)
    failed = penstock("policies", "check", "mine.py")
    assert failed.status == 2
    assert "which class? mine.py has Mine; give mine.py:Mine" in failed.err
    assert "did you mean 'Mine'?" in penstock("policies", "check", "mine.py:mine").err


LOOP = TURN + "        while True:\n            pass\n"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (LOOP, "it takes more than 1 s of processor time, the last of it in turn() of policy Mine"),
        (GROUP + "    while True:\n        pass\n", "the last of it in Mine (mine.py, line"),
        (
            TURN + "        return sum(__import__('itertools').repeat(0))\n",
            "one of its calls was killed after 1 s of processor time",
        ),
        (
            TURN + "        __import__('os')._exit(0)\n",
            "it ended the process that checked it (exit status 0)",
        ),
    ],
)
def test_a_policy_that_never_returns_is_found(
    penstock: Any, directory: Path, body: str, message: str
) -> None:
    """The check hung. By processor time: how busy the machine is makes no difference."""
    name = policy_file(directory, body)
    failed = penstock("policies", "check", name, "--cpu-limit", "1")
    assert failed.status == 2
    assert message in failed.err


def test_a_policy_that_sleeps_is_found(directory: Path) -> None:
    """It uses no processor time, and the check hung."""
    name = policy_file(directory, TURN + "        __import__('time').sleep(1e6)\n")
    checked = check_within("sharing", str(directory / name), 60, patience=0.1)
    [problem] = checked.problems
    assert problem.startswith("it did not return within 0.1 s, and did not use its processor time")


def test_memory_that_a_policy_takes_is_not_the_workloads(penstock: Any, directory: Path) -> None:
    penstock("generate", "io-sets", "--jobs", "3", "--horizon", "300", "--out", "jobs.json")
    name = policy_file(directory, TURN + "        raise MemoryError\n")
    failed = penstock("simulate", "jobs.json", "--policy", name)
    assert failed.status == 2
    assert "policy 'mine.py:Mine' failed: MemoryError" in failed.err


def test_what_may_be_impure_is_a_warning(penstock: Any, directory: Path) -> None:
    name = policy_file(directory, GROUP + "    import time\n")
    checked = penstock("policies", "check", name)
    assert checked.status == 0
    assert f"warning: policy '{name}': line 7: import of time" in checked.err
    [warning] = penstock("policies", "check", name, "--json").json["warnings"]
    assert "import of time" in warning


@pytest.mark.parametrize("verb", ["simulate", "compare"])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (TURN + "        raise SystemExit\n", "turn() of policy Mine raised SystemExit()"),
        (GROUP + "    raise SystemExit('at import')\n", "line 7, SystemExit: at import"),
        (
            GROUP + "    def __init__(self):\n        raise SystemExit(0)\n",
            "the constructor of policy 'mine.py:Mine' raised SystemExit(0)",
        ),
    ],
)
def test_a_policy_that_ends_the_program_is_wrong_input(
    penstock: Any, directory: Path, verb: str, body: str, message: str
) -> None:
    """The tool ended with 0 and without a result."""
    penstock("generate", "io-sets", "--jobs", "3", "--horizon", "300", "--out", "jobs.json")
    name = policy_file(directory, body)
    option = "--policy" if verb == "simulate" else "--policies"
    failed = penstock(verb, "jobs.json", option, name)
    assert failed.status == 2
    assert message in failed.err


def test_an_interrupt_names_the_policy_that_was_asked(penstock: Any, directory: Path) -> None:
    penstock("generate", "io-sets", "--jobs", "3", "--horizon", "300", "--out", "jobs.json")
    body = TURN + "        print('asked', flush=True)\n        while True:\n            pass\n"
    name = policy_file(directory, body)
    command = [sys.executable, "-m", "penstock.cli", "simulate", "jobs.json", "--policy", name]
    with subprocess.Popen(
        command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130
    assert "penstock: error: interrupted in turn() of policy Mine" in err
