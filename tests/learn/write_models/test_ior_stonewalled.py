"""IOR runs that end by time (-D): the bytes that were moved count, not those that were asked for.

The outputs are written by hand after the formats that IOR 3.0 to 4.0 print.
"""

import pytest

from penstock.errors import InputError
from penstock.learn.write_models.sources import ior
from penstock.model.write import Write

MIB = 2**20
MOVED = 1_310_720_000
"""Bytes: 1250 MiB of the 128 GiB that the options below ask for."""
WARNINGS = f"""\
WARNING: Expected aggregate file size       = 137438953472
WARNING: Stat() of aggregate file size      = {MOVED}
WARNING: Using actual aggregate bytes moved = {MOVED}
WARNING: Maybe caused by deadlineForStonewalling
"""
BURST = MOVED / 2
STONEWALLED = Write(nodes=1, cores=2, burst=BURST)
OPTIONS = """\
IOR-4.0.0: MPI Coordinated Test of Parallel I/O

Options:
api                 : POSIX
access              : file-per-process
segments            : 1
nodes               : 1
tasks               : 2
clients per node    : 2
blocksize           : 64 GiB
aggregate filesize  : 128 GiB
stonewallingTime    : 10

Results:

access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
"""  # noqa: E501 - as IOR prints it
ROW = "write     125.00     2000.00    0.0005      67108864   64.00      0.000017   10.00      0.001      10.00      0\n"  # noqa: E501
READ = ROW.replace("write", "read ")
OLD = """\
IOR-3.0.1: MPI Coordinated Test of Parallel I/O
Summary:
\tapi                = POSIX
\taccess             = file-per-process
\tclients            = 2 (2 per node)
\tblocksize          = 64 GiB
\taggregate filesize = 128 GiB
\tUsing stonewalling = 10 second(s)

access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
"""
OLD_ROW = (
    "write     125.00     67108864   64.00      0.000018   10.00      0.001      10.00      0\n"
)


@pytest.mark.parametrize("text", [OPTIONS + WARNINGS + ROW, OLD + WARNINGS + OLD_ROW])
def test_text_has_the_bytes_of_its_warning(text: str) -> None:
    (sample,) = ior.samples(text, "out", machine="here")
    assert (sample.write, sample.times) == (STONEWALLED, (10.0,))


@pytest.mark.parametrize("text", [OPTIONS + ROW, OLD + OLD_ROW])
def test_without_the_warning_bytes_are_bandwidth_times_seconds(text: str) -> None:
    """The log may be kept apart; 125 MiB/s for 10 s are 1250 MiB."""
    (sample,) = ior.samples(text, "out", machine="here")
    assert sample.write.bytes == pytest.approx(MOVED, rel=1e-3)


def test_a_warning_belongs_to_the_next_result_alone() -> None:
    """The read's own warning is not that of the next write, which moved 2500 MiB."""
    other = WARNINGS.replace(str(MOVED), "7")
    text = OPTIONS + WARNINGS + ROW + other + READ + ROW.replace("125.00", "250.00")
    first, second = ior.samples(text, "out", machine="here")
    assert first.write == STONEWALLED
    assert second.write.bytes == pytest.approx(2 * MOVED, rel=1e-3)


def test_a_run_that_moved_what_it_should_is_exact() -> None:
    """Printed digits allow for 0.1%: 64 GiB each in 4000 s are 64 GiB, not 64.02."""
    row = ROW.replace("125.00    ", "32.77     ").replace("10.00 ", "4000 ", 2)
    (sample,) = ior.samples(OPTIONS + row, "out", machine="here")
    assert sample.write.burst == 64 * 2**30


RESULT = """\
            {
        "access": "write", 
        "bwMiB": 125.0000, 
        "blockKiB": 67108864.0000, 
        "xferKiB": 64.0000, 
        "openTime": 0.0000, 
        "totalTime": 10.0000
      }
"""  # noqa: W291 - as IOR prints it
JSON = f"""\
{{
  "Command line": "ior -w -D 10 -O summaryFormat=JSON", 
  "tests": [
    {{
    "TestID": 0, 
    "Parameters": {{
      "api": "POSIX", 
      "filePerProc": 1, 
      "segmentCount": 1, 
      "blockSize": 68719476736
    }}
, 
    "Options": {{
      "api": "POSIX", 
      "access": "file-per-process", 
      "nodes": 1, 
      "tasks": 2, 
      "clients per node": 2
    }}
, 
    "Results": [
      [ {WARNINGS}{RESULT}]
]
}}
]
, 
"Finished": "Wed Nov 18 07:02:43 2026"
}}
"""  # noqa: W291


def test_json_with_warnings_inside_is_whole() -> None:
    (sample,) = ior.samples(JSON, "out", machine="here")
    assert (sample.write, sample.times) == (STONEWALLED, (10.0,))


def test_json_without_warnings_has_the_bytes_of_its_results() -> None:
    (sample,) = ior.samples(JSON.replace(WARNINGS, ""), "out", machine="here")
    assert sample.write.bytes == pytest.approx(MOVED, rel=1e-3)


def test_json_of_ior_3_2_has_a_banner_and_stray_brackets() -> None:
    """Its other ranks print brackets of their own into the output of the first."""
    text = "IOR-3.2.1: MPI Coordinated Test of Parallel I/O\n" + JSON.replace(
        ']\n, \n"Finished', ']\n, \n[ ]\n\n}\n}\n, \n"Finished'
    ).replace('      "nodes": 1, \n', "")
    (sample,) = ior.samples(text, "out", machine="here")
    assert (sample.write, sample.source) == (STONEWALLED, "IOR 3.2.1, POSIX")


def test_json_that_is_cut_short_is_refused() -> None:
    with pytest.raises(InputError, match="give all that IOR wrote"):
        ior.samples(JSON.partition('"Finished"')[0], "out", machine="here")


HEAD = "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),"
CSV = f"""{HEAD}numTasks,iter
{WARNINGS}write,125.0000,2000.0,0.0005,67108864.0000,64.0000,0.0001,9.9,0.001,10.0000,2,0
"""
LAYOUT = ior.Layout(cores=2, shared=False)


def test_csv_has_the_bytes_of_its_warning() -> None:
    (sample,) = ior.samples(CSV, "out", machine="here", layout=LAYOUT)
    assert sample.write == STONEWALLED
    (sample,) = ior.samples(CSV.replace(WARNINGS, ""), "out", machine="here", layout=LAYOUT)
    assert sample.write.bytes == pytest.approx(MOVED, rel=1e-3)


def test_a_table_of_ranks_is_called_so() -> None:
    """IO500 keeps one beside each output of IOR; its first column is 'access', too."""
    table = "access,rank,runtime-with-openclose,runtime,throughput-withopenclose,throughput\n"
    with pytest.raises(InputError, match="one row per rank"):
        ior.samples(table + "write,0,1.0,1.0,5.0,5.0\n", "out", machine="here", layout=LAYOUT)


@pytest.mark.parametrize(
    "text",
    [
        OLD.replace("2 (2 per node)", "0 (2 per node)") + OLD_ROW,
        OPTIONS.replace("tasks               : 2", "tasks               : 0") + ROW,
        JSON.replace('"tasks": 2', '"tasks": 0').replace('"segmentCount": 1', '"segmentCount": 0'),
    ],
)
def test_no_tasks_is_an_error_that_says_so(text: str) -> None:
    with pytest.raises(InputError, match="both must be one or more"):
        ior.samples(text, "out", machine="here")


def uneven(tasks: int) -> Write:
    """The first of ten nodes has ten processes, the others fewer."""
    text = OPTIONS.replace("tasks               : 2", f"tasks               : {tasks}")
    text = text.replace("nodes               : 1\n", "nodes               : 10\n")
    text = text.replace("clients per node    : 2", "clients per node    : 10")
    (sample,) = ior.samples(text + WARNINGS + ROW, "out", machine="here")
    return sample.write


def test_nodes_are_those_of_ior_where_they_are_not_filled_evenly() -> None:
    assert uneven(90) == Write(nodes=10, cores=9, burst=MOVED / 90)
    odd = uneven(85)
    assert (odd.nodes, odd.cores) == (10, 9)
    assert odd.bytes == pytest.approx(MOVED)
