"""Files of samples: read as people and spreadsheets write them, refused with the line."""

from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.learn.write_models import samples
from penstock.learn.write_models.machine import load
from penstock.learn.write_models.samples import Sample
from penstock.model.write import Write

HEAD = ",".join(samples.COLUMNS)
LINE = {
    "machine": "titan",
    "source": "x",
    "nodes": "2",
    "cores": "4",
    "burst": "1e9",
    "shared": "0",
    "times": "6 7 8",
}


def text(**changed: str) -> str:
    row = LINE | changed
    return "\n".join([HEAD, *[",".join((LINE | c).get(n, "") for n in samples.COLUMNS)
                              for c in ({}, row)], ""])  # fmt: skip


@pytest.mark.parametrize(
    ("word", "shared"),
    [("1", True), ("TRUE", True), ("True", True), ("0", False), ("False", False)],
)
def test_shared_in_any_case(word: str, shared: bool) -> None:
    assert samples.parse(text(shared=word), "x.csv")[1].write.shared is shared


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"shared": "yes"}, "shared is 'yes'"),
        ({"shared": "7"}, "shared is '7'"),
        ({"shared": ""}, "shared is ''"),
        ({"times": "1e308 1e308"}, "times must be"),
        ({"times": "1e-320"}, "times must be"),
        ({"times": ""}, "times must be"),
        ({"times": "6 x"}, "'x' is not a number of seconds"),
        ({"nodes": "0"}, "one or more"),
        ({"burst": "nan"}, "one or more"),
        ({"nodes": "many"}, "int"),
    ],
)
def test_a_wrong_line_is_told(changed: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=r"^x\.csv, line 3: ") as error:
        samples.parse(text(**changed), "x.csv")
    assert message in str(error.value)


@pytest.mark.parametrize("cut", ["titan,x,2", ",".join(["1"] * 30)])
def test_a_line_of_other_length_is_told(cut: str) -> None:
    with pytest.raises(InputError, match=r"x\.csv, line 3: this row has a different number"):
        samples.parse(text().rsplit("\n", 2)[0] + f"\n{cut}\n", "x.csv")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"stripe_count": "2000"}, "a stripe count of 2000"),
        ({"cores": "99"}, "99 cores per node"),
        ({"machine": "cetus"}, "a sample is of 'cetus'"),
    ],
)
def test_what_the_machine_cannot_do_is_told_with_its_line(
    tmp_path: Path, changed: dict[str, str], message: str
) -> None:
    (tmp_path / "x.csv").write_text(text(**changed))
    assert len(samples.read(tmp_path / "x.csv")) == 2
    with pytest.raises(InputError, match=r"x\.csv, line 3: ") as error:
        samples.read_for(load("titan"), tmp_path / "x.csv")
    assert message in str(error.value)


def test_a_spreadsheets_mark_is_no_part_of_the_first_column(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(text(), encoding="utf-8-sig")
    assert len(samples.read(tmp_path / "x.csv")) == 2


@pytest.mark.parametrize("sign", [";", "\t"])
def test_another_separator_is_named(sign: str) -> None:
    with pytest.raises(InputError, match="as separator; use commas"):
        samples.parse(text().replace(",", sign), "x.csv")


def test_runs_of_the_same_write_and_source_are_one_sample() -> None:
    write = Write(nodes=1, cores=1, burst=1e6)
    one = Sample(machine="m", source="a", write=write, times=(1.0, 2.0))
    other = Sample(machine="m", source="b", write=write, times=(4.0,))
    first, second = samples.merge([one, other, one])
    assert (first.times, second.times) == ((1.0, 2.0, 1.0, 2.0), (4.0,))
