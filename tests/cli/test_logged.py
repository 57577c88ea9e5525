"""A write from a Darshan log: what it says is taken, what it does not say is said to be assumed."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

matches = importlib.util.find_spec("darshan")
if matches is None or matches.origin is None:
    pytest.skip("PyDarshan, whose logs these are, is not installed", allow_module_level=True)
LOGS = {path.name: path for path in sorted(Path(matches.origin).parent.rglob("*.darshan"))}
IOR = str(LOGS["sample-badost.darshan"])
"""2,048 processes, a file each, 256 MiB each, one stripe each; it does not say on which nodes."""


def test_the_logged_write_is_predicted(penstock: Any) -> None:
    answer = penstock("predict", "--machine", "titan", "--log", IOR, "--json").json
    write = answer["write"]
    assert (write["nodes"], write["cores"], write["shared"]) == (128, 16, False)
    assert write["burst"] == pytest.approx(256 * 2**20, rel=0.01)
    assert (write["stripe_count"], write["stripe_size"]) == (1, 2**20)
    assert any("taken to be 16 on each" in note for note in answer["notes"])


@pytest.mark.parametrize("given", [("--cores", "8"), ("--nodes", "256")])
def test_how_processes_were_spread_may_be_told(penstock: Any, given: tuple[str, str]) -> None:
    answer = penstock("predict", "--machine", "titan", "--log", IOR, *given, "--json").json
    assert (answer["write"]["nodes"], answer["write"]["cores"]) == (256, 8)
    assert answer["write"]["bytes"] == pytest.approx(2**39, rel=0.01), (
        "no byte more than was written"
    )
    assert not any("does not say on how many nodes" in note for note in answer["notes"])


def test_stripes_of_another_file_system_are_left_out_and_said(penstock: Any) -> None:
    answer = penstock("predict", "--machine", "cetus", "--log", IOR, "--json").json
    assert answer["write"]["stripe_count"] is None
    assert any("cetus cannot provide the log's striping" in note for note in answer["notes"])


def test_options_override_the_log(penstock: Any) -> None:
    answer = penstock("advise", "--machine", "titan", "--log", IOR, "--shared", "--burst", "1 GB",
                    "--stripe-count", "8", "--json").json  # fmt: skip
    write = answer["now"]["write"]
    assert (write["shared"], write["burst"], write["stripe_count"]) == (True, 1e9, 8)


def test_three_commands_end_in_a_setting(penstock: Any, directory: Path) -> None:
    """Of the logged write to one file; nobody spreads its files better than they are."""
    args = ("advise", "--machine", "titan", "--log", IOR, "--interval-budget", "10%")
    out = penstock(*args, "--shared", "--hints", "hints").out
    assert "gain " in out
    assert "lfs setstripe" in out
    assert f"export ROMIO_HINTS={directory / 'hints'}" in out
    assert "checkpoint every" in out
    assert (directory / "hints").exists()
    assert "no change" in penstock(*args).out


@pytest.mark.parametrize("name", LOGS)
def test_every_log_is_predicted_or_refused_in_a_line(penstock: Any, name: str) -> None:
    result = penstock("predict", "--machine", "titan", "--log", str(LOGS[name]), "--json")
    if result.status:
        assert result.status == 2
        assert name in result.err
        assert result.err.count("\n") == 1
    else:
        assert result.json["seconds"] > 0


def test_a_cut_log_is_refused(penstock: Any, directory: Path) -> None:
    content = Path(IOR).read_bytes()
    (directory / "cut.darshan").write_bytes(content[: len(content) // 2])
    result = penstock("predict", "--machine", "titan", "--log", "cut.darshan")
    assert result.status == 2
    assert "cut.darshan" in result.err
    assert result.out == ""


def test_a_log_with_no_spread_at_all_is_refused(penstock: Any) -> None:
    result = penstock("predict", "--machine", "titan", "--log", IOR, "--cores", "0")
    assert result.status == 2
    assert "0 processes per node" in result.err
