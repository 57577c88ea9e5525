"""penstock samples: what is simulated says so, what is imported can be read, slips are told."""

from pathlib import Path
from typing import Any

import pytest

from penstock.learn.write_models import samples

IOR = Path(__file__).parents[1] / "learn" / "write_models" / "ior"
TEXT, TABLE = str(IOR / "4.0.txt"), str(IOR / "4.0.csv")


def test_simulated_samples_say_so_and_are_the_seeds(penstock: Any, directory: Path) -> None:
    asked = ("samples", "simulate", "cetus", "--part", "0.01", "--nodes", "64,200")
    told = penstock(*asked, "--out", "a.csv", "--json").json
    assert told["source"] == "simulated"
    assert [row["nodes"] for row in told["scales"]] == [64, 200]
    found = samples.read(directory / "a.csv")
    assert {one.source for one in found} == {"simulated"}
    assert sum(one.converged() for one in found) == sum(r["converged"] for r in told["scales"])
    people = penstock(*asked, "--out", "b.csv").out
    assert "simulated, not measured" in people
    assert (directory / "a.csv").read_text() == (directory / "b.csv").read_text()
    penstock(*asked, "--out", "b.csv", "--seed", "2")
    assert (directory / "a.csv").read_text() != (directory / "b.csv").read_text()


def test_outputs_of_ior_are_imported_and_equal_writes_are_one_sample(
    penstock: Any, directory: Path
) -> None:
    told = penstock(
        "samples", "import", TEXT, TEXT, "--machine", "here", "--out", "i.csv", "--json"
    ).json
    assert (told["samples"], told["runs"]) == (1, 4)
    (one,) = samples.read(directory / "i.csv")
    assert one.times == (6.0, 7.0, 6.0, 7.0)
    asked = ("samples", "import", TABLE, "--machine", "here", "--out", "c.csv")
    assert penstock(*asked, "--cores", "4", "--file-per-process").status == 0
    assert samples.read(directory / "c.csv")[0].write == one.write


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("simulate", "citus", "--out", "x.csv"), "did you mean 'cetus'"),
        (("simulate", "cetus", "--out", "no/x.csv"), "there is no directory"),
        (("simulate", "cetus", "--nodes", "3", "--out", "x.csv"), "the templates have 1, 2, 4"),
        (("simulate", "none.toml", "--out", "x.csv"), "none.toml cannot be read"),
        (("import", "none.txt", "--machine", "m", "--out", "x.csv"), "none.txt cannot be read"),
        (("import", TEXT, "--out", "x.csv"), "give --machine"),
        (("import", TABLE, "--machine", "m", "--out", "x.csv"), "give --cores"),
        (
            ("import", TEXT, "--from", "archer", "--out", "x.csv"),
            "no column 'system'",
        ),
        (
            ("import", TEXT, "--from", "explorer", "--machine", "m", "--out", "x.csv"),
            "is no runs.jsonl",
        ),
    ],
)
def test_slips_are_told(penstock: Any, directory: Path, args: tuple[Any, ...], said: str) -> None:
    result = penstock("samples", *args)
    assert (result.status, said in result.err) == (2, True), result.err
    assert not (directory / "x.csv").exists()
