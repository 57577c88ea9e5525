"""Sources of samples. IOR's outputs here are written by hand, after its documented formats."""

import json
from pathlib import Path
from typing import Any

import published_data
import pytest
from learn.write_models.archer import samples

from penstock.errors import InputError
from penstock.learn.write_models.sources import archer, explorer, ior
from penstock.model.write import Write

MIB = 2**20

FORMS = Path(__file__).parent / "ior"
IOR_4, IOR_31, IOR_CSV = ((FORMS / name).read_text() for name in ("4.0.txt", "3.1.txt", "4.0.csv"))
PARAMETERS = {"api": "POSIX", "blockSize": 16 * MIB, "segmentCount": 4, "filePerProc": 1}
RESULTS = [
    {"access": "write", "bwMiB": 85.33, "totalTime": 6.0},
    {"access": "read", "bwMiB": 512.0, "totalTime": 1.0},
    {"access": "write", "bwMiB": 73.14, "totalTime": 7.0},
]
OWN = Write(nodes=2, cores=4, burst=64 * MIB)


def as_json(**changes: Any) -> str:
    test = {
        "Parameters": PARAMETERS,
        "Options": {"tasks": "8", "clients per node": "4"},
        "Results": RESULTS,
    }
    return json.dumps({"Version": "4.0.0", "tests": [test | changes]})


def test_ior_4_as_text() -> None:
    (sample,) = ior.samples(IOR_4, "out", machine="here")
    assert (sample.write, sample.times) == (OWN, (6.0, 7.0))
    assert (sample.machine, sample.source) == ("here", "IOR 4.0.0, POSIX")


def test_ior_3_as_text_has_other_columns_and_stripes() -> None:
    (sample,) = ior.samples(IOR_31, "out", machine="here")
    assert sample.write == Write(
        nodes=2, cores=4, burst=64 * MIB, shared=True, stripe_count=12, stripe_size=4 * MIB
    )
    assert (sample.times, sample.source) == ((8.0,), "IOR 3.1.0, MPIIO")


def test_a_later_test_does_not_inherit_options() -> None:
    later = IOR_4.partition("Options:")[2].replace("file-per-process", "single-shared-file")
    own, shared = ior.samples(IOR_4 + "\nOptions:" + later, "out", machine="here")
    assert (own.write.shared, shared.write.shared) == (False, True)
    assert own.times == shared.times


@pytest.mark.parametrize(
    "text",
    [
        as_json(),
        as_json(Results=[[RESULTS[0], RESULTS[1]], [RESULTS[2]]]),
        as_json(Results=[RESULTS]),
    ],
)
def test_ior_as_json(text: str) -> None:
    (sample,) = ior.samples(text, "out", machine="here")
    assert (sample.write, sample.times) == (OWN, (6.0, 7.0))


def test_ior_as_csv_needs_to_be_told_the_rest() -> None:
    layout = ior.Layout(cores=4, shared=False)
    (sample,) = ior.samples(IOR_CSV, "out", machine="here", layout=layout)
    assert (sample.write, sample.times) == (OWN, (6.0, 7.0))
    with pytest.raises(InputError, match="give --cores"):
        ior.samples(IOR_CSV, "out", machine="here", layout=ior.Layout(cores=4))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no write has a result"),
        (IOR_4.partition("write ")[0], "no write has a result"),
        (IOR_4.replace("tasks               : 8\n", ""), "it has no 'tasks'"),
        (IOR_4.replace("6.00 ", "-1.0 "), "a time of -1.0"),
        (IOR_4.replace("file-per-process", "odd"), "access is 'odd'"),
        (IOR_31.replace("8 (4 per node)", "eight"), "clients are 'eight'"),
        ("{", "truncated"),
        ("{}", "no write has a result"),
        (as_json(Parameters={}), "it has no 'segmentCount'"),
        (as_json()[:-20], "give all that IOR wrote"),
        (as_json(Results=[1, 2]), "no write has a result"),
        (as_json(Options={"tasks": None, "clients per node": "4"}), "tasks is 'null'"),
        (as_json(Options={"tasks": "x", "clients per node": "4"}), "tasks is 'x'"),
        ('{"tests": 3}', "no write has a result"),
        (IOR_4.replace("6.00 ", "soon "), "line 20: a time of soon"),
        (as_json(Options={"tasks": "8", "clients per node": "0"}), "both must be one or more"),
    ],
)
def test_damaged_output_of_ior_is_told_with_its_name(text: str, message: str) -> None:
    with pytest.raises(InputError, match=r"^out: ") as error:
        ior.samples(text, "out", machine="here")
    assert message in str(error.value)
    assert not any(word in str(error.value) for word in ("int()", "object", "literal"))


HEAD = "system,nprocs,local_array_edge,api,stripe_layout,rep,time_s"
ARCHER = f"""{HEAD}
ARCHER,48,128,MPI-IO,striped,1,2.5
ARCHER,48,128,MPI-IO,striped,2,3.5
ARCHER,48,128,HDF5,striped,1,9.0
ARCHER,1,128,MPI-IO,unstriped,1,1.0
Cirrus,48,128,MPI-IO,striped,1,7.0
"""


def test_archers_repetitions_are_runs_of_a_sample() -> None:
    both, other, alone = archer.samples(ARCHER, "benchio.csv")
    cube = 8 * 128**3
    assert both.write == Write(nodes=2, cores=24, burst=cube, shared=True, stripe_count=48)
    assert (both.times, both.source) == ((2.5, 3.5), "benchio, MPI-IO")
    assert (other.write, other.source) == (both.write, "benchio, HDF5")
    assert (alone.write.nodes, alone.write.cores, alone.write.stripe_count) == (1, 1, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "no column 'system'"),
        (ARCHER.replace("striped,1,2.5", "stripped,1,2.5"), "line 2: .*did you mean"),
        (ARCHER.replace("2.5", "inf"), "line 2: a time of inf"),
        (ARCHER.replace("ARCHER,48", "ARCHER,x"), "line 2"),
        (f"{HEAD}\nCirrus,48,128,MPI-IO,striped,1,7.0\n", "no results of ARCHER"),
    ],
)
def test_damaged_tables_of_archer(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        archer.samples(text, "benchio.csv")


@published_data.either
def test_archers_own_results(*, full: bool) -> None:
    rows = samples(by_job=False, full=full)
    assert sum(len(sample.times) for sample in rows) == 1839 + 580
    assert {sample.write.nodes for sample in rows} >= {1, 2, 64, 1024}
    assert max(sample.write.bursts for sample in rows) == 24576


def line(repeat: int, seconds: float, **own: object) -> str:
    ranks = [
        {
            "operation": operation,
            "repetition": 0,
            "pattern": 0,
            "rank": rank,
            "bytes": 100,
            "seconds": seconds + rank,
            "files": "shared",
        }
        for operation in ("open", "write")
        for rank in (0, 1)
    ]
    entry = {
        "cell": ["p by 2", 2.0, repeat],
        "seconds": 1.0,
        "rows": [{"marked": ""} | own, *ranks],
    }
    return json.dumps(entry)


HEADER = json.dumps({"study": "explore", "emulated": None})


def test_the_explorers_runs_are_as_long_as_their_slowest_rank() -> None:
    text = "\n".join([HEADER, line(0, 1.0), line(1, 2.0), line(2, 9.0, marked="direct")]) + "\n"
    (sample,) = explorer.samples(text, "runs.jsonl", machine="here")
    assert sample.times == (2.0, 3.0)
    assert sample.write == Write(nodes=1, cores=2, burst=100.0, shared=True)
    assert sample.source == "explorer, 2 I/O nodes"


def test_what_an_interruption_leaves_of_a_line_is_passed_over() -> None:
    text = "\n".join([HEADER, line(0, 1.0), line(1, 2.0)[:30]])
    assert explorer.samples(text, "runs.jsonl", machine="here")[0].times == (2.0,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a runs.jsonl"),
        ('{"study": "packs"}\n', "of the study 'packs'"),
        (f"{HEADER}\n", "no unmarked runs that wrote"),
        (f"{HEADER}\nnonsense\n", "line 2"),
        (f"{HEADER}\n" + line(0, 1.0).replace('"shared"', '""') + "\n", "shared a file"),
    ],
)
def test_other_files_are_not_the_explorers(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        explorer.samples(text, "runs.jsonl", machine="here")
