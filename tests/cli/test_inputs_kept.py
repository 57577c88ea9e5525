"""No verb of writes takes the place of a file that it reads."""

from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(
    "command",
    [
        "write-model train mine --machine titan --out mine",
        "write-model train runs.csv --machine mine.toml --out mine.toml",
        "samples import other mine --machine titan --out mine",
        "samples simulate mine.toml --out mine.toml",
        "advise --machine titan --log mine --hints mine",
        "advise --model mine --nodes 2 --cores 1 --burst 1MB --hints mine",
        "advise --machine mine.toml --nodes 2 --cores 1 --burst 1MB --hints mine.toml",
        "profile mine --out mine",
        "profile other mine --workload mine",
    ],
)
def test_what_is_read_stays(penstock: Any, directory: Path, command: str) -> None:
    for name in ("mine", "mine.toml"):
        (directory / name).write_text("weeks of work")
    result = penstock(*command.split())
    assert result.status == 2
    assert "is read by this command; write to another file" in result.err
    assert (directory / "mine").read_text() == "weeks of work"
    assert (directory / "mine.toml").read_text() == "weeks of work"


def test_a_result_may_be_called_like_a_machine(penstock: Any, directory: Path) -> None:
    """What is named is a machine, and no file that is read."""
    (directory / "titan").touch()
    answer = ("samples", "simulate", "titan", "--nodes", "1", "--part", "0.01", "--out", "titan")
    assert penstock(*answer).status == 0
