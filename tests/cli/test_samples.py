"""penstock samples: what is simulated says so, what is imported can be read, slips are told."""

import re
from pathlib import Path
from typing import Any

import pytest

from penstock.learn.write_models import samples

IOR = Path(__file__).parents[1] / "learn" / "write_models" / "ior"
TEXT, TABLE = str(IOR / "4.0.txt"), str(IOR / "4.0.csv")


def test_simulated_samples_say_so_and_are_the_seeds(penstock: Any, directory: Path) -> None:
    arguments = ("samples", "simulate", "cetus", "--part", "0.01", "--nodes", "64,200")
    answer = penstock(*arguments, "--out", "a.csv", "--json").json
    assert answer["source"] == "simulated"
    assert [row["nodes"] for row in answer["scales"]] == [64, 200]
    matches = samples.read(directory / "a.csv")
    assert {one.source for one in matches} == {"simulated"}
    assert sum(one.converged() for one in matches) == sum(r["converged"] for r in answer["scales"])
    left = sum(not one.converged() for one in matches)
    assert answer["unconverged"] == pytest.approx(left / len(matches))
    people = penstock(*arguments, "--out", "b.csv").out
    assert "simulated, not measured" in people
    assert (directory / "a.csv").read_text() == (directory / "b.csv").read_text()
    penstock(*arguments, "--out", "b.csv", "--seed", "2")
    assert (directory / "a.csv").read_text() != (directory / "b.csv").read_text()


def test_outputs_of_ior_are_imported_and_equal_writes_are_one_sample(
    penstock: Any, directory: Path
) -> None:
    (directory / "later.txt").write_text(
        Path(TEXT).read_text().replace("6.00 ", "6.50 ").replace("85.33", "78.77")
    )
    answer = penstock(
        "samples", "import", TEXT, "later.txt", "--machine", "here", "--out", "i.csv", "--json"
    ).json
    assert (answer["samples"], answer["runs"]) == (1, 4)
    (one,) = samples.read(directory / "i.csv")
    assert one.times == (6.0, 7.0, 6.5, 7.0)
    arguments = ("samples", "import", TABLE, "--machine", "here", "--out", "c.csv")
    assert penstock(*arguments, "--cores", "4", "--file-per-process").status == 0
    assert samples.read(directory / "c.csv")[0].write == one.write


def test_a_table_that_a_spreadsheet_wrote_is_imported(penstock: Any, directory: Path) -> None:
    (directory / "e.csv").write_text(Path(TABLE).read_text(), encoding="utf-8-sig")
    arguments = (
        "samples",
        "import",
        "e.csv",
        "--machine",
        "here",
        "--out",
        "c.csv",
        "--cores",
        "4",
    )
    assert penstock(*arguments, "--file-per-process").status == 0


@pytest.mark.parametrize("again", ["i.txt", "copy.txt"])
def test_runs_do_not_count_twice(penstock: Any, directory: Path, again: str) -> None:
    for name in ("i.txt", "copy.txt"):
        (directory / name).write_text(Path(TEXT).read_text())
    result = penstock("samples", "import", "i.txt", again, "--machine", "m", "--out", "x.csv")
    assert result.status == 2
    assert f"{again} has the same runs as i.txt" in result.err


def test_the_guides_machine_can_be_simulated(penstock: Any, directory: Path) -> None:
    """Templates have up to 64 stripes, and it has 16 targets."""
    page = Path(__file__).parents[2] / "docs/formats/machines.md"
    (example,) = re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.M | re.S)
    (directory / "small.toml").write_text(example)
    arguments = ("samples", "simulate", "./small.toml", "--part", "0.01", "--nodes", "16")
    result = penstock(*arguments, "--out", "s.csv")
    assert result.status == 0, result.err
    assert max(s.write.stripe_count or 0 for s in samples.read(directory / "s.csv")) <= 16


def test_a_machine_without_bandwidths_says_so(penstock: Any) -> None:
    simulated = penstock("samples", "simulate", "archer", "--out", "x.csv")
    assert "archer has no stage with a bandwidth" in simulated.err
    listed = {one["name"]: one["bandwidths"] for one in penstock("machines", "--json").json}
    assert listed == {"archer": False, "cetus": True, "titan": True}
    assert "unknown: needs --model" in penstock("machines").out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("simulate", "citus", "--out", "x.csv"), "did you mean 'cetus'"),
        (("simulate", "cetus", "--out", "no/x.csv"), "there is no directory"),
        (("simulate", "cetus", "--nodes", "3", "--out", "x.csv"), "the templates have 1, 2, 4"),
        (("simulate", "none.toml", "--out", "x.csv"), "none.toml cannot be read"),
        (("import", "none.txt", "--machine", "m", "--out", "x.csv"), "none.txt cannot be read"),
        (("import", TEXT, "--out", "x.csv"), "with --machine NAME"),
        (("import", TABLE, "--machine", "m", "--out", "x.csv"), "give --cores"),
        (
            ("import", TEXT, "--from", "archer", "--out", "x.csv"),
            "no column 'system'",
        ),
        (
            ("import", TEXT, "--from", "explorer", "--machine", "m", "--out", "x.csv"),
            "is not a runs.jsonl",
        ),
    ],
)
def test_slips_are_told(
    penstock: Any, directory: Path, args: tuple[Any, ...], message: str
) -> None:
    result = penstock("samples", *args)
    assert (result.status, message in result.err) == (2, True), result.err
    assert not (directory / "x.csv").exists()
