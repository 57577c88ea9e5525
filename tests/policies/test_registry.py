"""Names to policies, and what a wrong name says."""

from pathlib import Path

import pytest

from penstock import registry
from penstock.errors import InputError
from penstock.model import Job
from penstock.policies.sharing.set_10 import Set10


def test_did_you_mean() -> None:
    with pytest.raises(InputError, match="did you mean 'set-10'"):
        registry.sharing("set-01")


def test_options_reach_the_policy() -> None:
    policy = registry.sharing("set-10", {"unknown": 3})
    assert isinstance(policy, Set10)
    assert policy.unknown == 3
    with pytest.raises(InputError, match="did you mean 'unknown'"):
        registry.sharing("set-10", {"unknwon": 3})


def test_a_policy_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from penstock.policies.base import ByArrival\n"
        "class Mine(ByArrival):\n"
        "    def group(self, job):\n"
        "        return job.user\n"
    )
    assert registry.sharing(f"{file}:Mine").weight(Job(id="a", serial=0)) == 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class Mine: pass", "it has no method group"),
        ("class Other: pass", "unknown class of .* 'Mine'"),
        ("raise RuntimeError('oops')", "oops"),
        ("def (", "cannot be loaded: line 1, SyntaxError"),
    ],
)
def test_a_wrong_policy_file(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        registry.sharing(f"{file}:Mine")


def test_a_missing_policy_file() -> None:
    with pytest.raises(InputError, match="does not exist"):
        registry.sharing("./nowhere.py:Mine")
