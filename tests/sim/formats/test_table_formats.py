"""Tables: CSV with a row an iteration, and SWF with made-up I/O."""

from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InputError
from penstock.model import Site
from penstock.sim import formats

HEADER = "; Version: 2.2\n; MaxNodes: 4\n; MaxProcs: 16\n"


def swf(*, job: int = 1, submit: int = 0, wait: int = 0, run: int = 100, procs: int = 8) -> str:
    values = [job, submit, wait, run, procs, -1, -1, -1, -1, -1, 1, 12, -1, 5, -1, -1, -1, -1]
    return " ".join(map(str, values)) + "\n"


def test_csv_rows_are_iterations_of_their_jobs(tmp_path: Path) -> None:
    file = tmp_path / "w.csv"
    file.write_text("job,release,nodes,compute,io\na,0,2,10,1\nb,5,1,3,1 GB\n\na,,,1 min,2\n")
    workload = formats.read(file, Site(bandwidth=5e8))
    assert workload.ids == ["a", "b"]
    assert workload.compute.tolist() == [10, 60, 3]
    assert workload.io.tolist() == [1, 2, 2]
    assert workload.release.tolist() == [0, 5]
    assert workload.nodes.tolist() == [2, 1]


def test_csv_columns_in_any_order_and_only_those_needed(tmp_path: Path) -> None:
    file = tmp_path / "w.csv"
    file.write_text('\N{ZERO WIDTH NO-BREAK SPACE}IO, job ,compute\r\n1,"a,b",2\r\n')
    workload = formats.read(file)
    assert (workload.id(0), workload.io[0], workload.compute[0]) == ("a,b", 1, 2)
    assert (workload.release[0], workload.nodes[0]) == (0, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n", "line 1: column 'job' is missing; begin with 'job,release,nodes,compute,io'"),
        ("job,compute,io\n", "no rows below the header"),
        ("job,compute\n", "line 1: column 'io' is missing"),
        ("job,compute,io,oi\n", "line 1: unknown column 'oi'; did you mean 'io'"),
        ("job,compute,io,io\n", "line 1: column 'io' occurs twice"),
        ("job,compute,io\na,1\n", "line 2: 2 fields; give 3"),
        ("job,compute,io\na,1,2\na,x,2\n", "line 3: compute: 'x' is not a duration"),
        ("job,compute,io\na,1_0,2\n", "line 2: compute: '1_0' is not a duration"),
        ("job,compute,io\na,1,nan\n", r"job 'a', phases\[0\], io is nan"),
        ("job,compute,io\na,1,-1\n", r"job 'a', phases\[0\], io is -1"),
        ("job,compute,io\na,1,1 GB\n", "line 2: io is the volume '1 GB'; set site.bandwidth"),
        ("job,nodes,compute,io\na,x,1,1\n", "line 2: nodes is 'x'; give a whole number"),
        ("job,nodes,compute,io\na,1,1,1\na,2,1,1\n", "line 3: nodes of job 'a' is 2, but 1"),
        ("job,release,compute,io\na,1,1,1\na,2,1,1\n", "line 3: release of job 'a' is 2, but 1"),
        ('job,compute,io\n"a,1,1\n', "line 2: unexpected end of data"),
    ],
)
def test_wrong_csv(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "w.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        formats.read(file)
    assert str(caught.value).startswith(str(file))


def test_swf_run_times_become_iterations_of_about_w_iter(tmp_path: Path) -> None:
    file = tmp_path / "w.swf"
    file.write_text(HEADER + swf(submit=10, wait=5, run=95) + swf(job=2, submit=20, run=4, procs=1))
    workload = formats.read(file, io_ratio=0.2, w_iter=10.0)
    # 95 s are ten iterations (to the nearest whole number) of 9.5 s, a fifth of each I/O.
    assert workload.offsets.tolist() == [0, 10, 11]
    assert workload.io[0] == pytest.approx(1.9)
    assert workload.work.tolist() == pytest.approx([95, 4])
    assert workload.alpha_io.tolist() == pytest.approx([0.2, 0.2])
    # Sixteen processors on four nodes: eight processors are two nodes.
    assert workload.nodes.tolist() == [2, 1]
    job = next(iter(workload.jobs()))
    assert (job.id, job.user, job.executable, job.processes) == ("1", "12", "5", 8)


def test_swf_jobs_start_as_logged_unless_the_site_has_a_queue(tmp_path: Path) -> None:
    file = tmp_path / "w.swf"
    file.write_text(swf(submit=10, wait=5))
    assert formats.read(file, io_ratio=0.1, w_iter=10.0).release.tolist() == [15]
    queued = formats.read(file, Site(nodes=64), io_ratio=0.1, w_iter=10.0)
    assert queued.release.tolist() == [10]
    assert queued.nodes.tolist() == [8]


def test_swf_jobs_that_never_ran_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "w.swf"
    file.write_text(swf(run=-1) + swf(job=2, run=0) + swf(job=3, procs=-1))
    workload = formats.read(file, io_ratio=0.1, w_iter=1000.0)
    assert workload.ids == ["3"]
    assert workload.nodes.tolist() == [1]
    file.write_text(swf(run=-1))
    with pytest.raises(InputError, match="no job with a run time"):
        formats.read(file, io_ratio=0.1, w_iter=1000.0)


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        (swf(), {}, "SWF has no I/O; say how to make it up: .*--io-ratio.*--w-iter"),
        (swf(), {"io_ratio": 0.1}, "SWF has no I/O"),
        (swf(), {"io_ratio": 0.0, "w_iter": 1.0}, "io_ratio is 0; give"),
        (swf(), {"io_ratio": float("nan"), "w_iter": 1.0}, "io_ratio is nan; give"),
        (swf(), {"io_ratio": 0.1, "w_iter": 0.0}, "w_iter is 0; give"),
        ("1 2 3\n", {"io_ratio": 0.1, "w_iter": 1.0}, "line 1 has 3 fields; SWF has 18"),
        (swf().replace("12", "x"), {"io_ratio": 0.1, "w_iter": 1.0}, "line 1: .*'x'"),
        (swf().replace("12", "inf"), {"io_ratio": 0.1, "w_iter": 1.0}, "line 1 .*not finite"),
        (swf() + swf(), {"io_ratio": 0.1, "w_iter": 1.0}, r"jobs\[1\].id '1' is used twice"),
        ("; nothing\n", {"io_ratio": 0.1, "w_iter": 1.0}, "no job with a run time"),
        (swf(run=10**12), {"io_ratio": 0.1, "w_iter": 1e-3}, "raise w_iter"),
    ],
)
def test_wrong_swf(tmp_path: Path, text: str, given: dict[str, Any], message: str) -> None:
    file = tmp_path / "w.swf"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        formats.read(file, **given)
