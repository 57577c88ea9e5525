"""Darshan logs: those that come with PyDarshan as it reads them, and damaged ones as errors."""

import dataclasses
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from limits import COMPUTING

from penstock.errors import InputError
from penstock.learn.profiles import Profile
from penstock.learn.profiles.timeline import Timeline
from penstock.sim.formats.darshan import Reader, logs_in, reader
from penstock.sim.formats.darshan.io_times import SEGMENT, bin_transfers, check_requests

darshan = pytest.importorskip("darshan", reason="PyDarshan is not installed")
FOLDER = Path(darshan.__path__[0])
LOGS = sorted(FOLDER.rglob("*.darshan"))
EXAMPLES = FOLDER / "examples" / "example_logs"
MOST_GROWTH = 20 << 20
"""Bytes of memory that 180 more logs may take."""


@pytest.fixture(scope="module")
def reading() -> Iterator[Reader]:
    with Reader() as one:
        yield one


def test_all_logs_are_there() -> None:
    assert len(LOGS) >= 18


@pytest.mark.parametrize("path", LOGS, ids=lambda p: f"{p.parent.name}-{p.stem[:20]}")
def test_every_log_is_profiled(path: Path, reading: Reader) -> None:
    profile = reading.read(path)
    assert profile.processes >= 1
    assert profile.volume > 0
    volumes = dict.fromkeys(("read", "write"), 0.0)
    for part in profile.patterns:
        volumes[part.operation] += part.volume
    assert volumes["read"] == pytest.approx(profile.read)
    assert volumes["write"] == pytest.approx(profile.written)
    ends = [0.0, *(time for phase in profile.phases for time in (phase.began, phase.ended))]
    assert ends == sorted(ends)
    moved = sum(phase.read + phase.written for phase in profile.phases)
    assert moved <= profile.volume * 1.001
    assert profile.io_seconds <= profile.seconds


def test_volumes_are_those_that_pydarshan_sums(reading: Reader) -> None:
    """The oracle is PyDarshan's own report of the same log, by data frames."""
    path = EXAMPLES / "sample-badost.darshan"
    script = (
        "import sys, darshan\n"
        "report = darshan.DarshanReport(sys.argv[1], read_all=True)\n"
        "for name in ('POSIX', 'STDIO'):\n"
        "    frame = report.records[name].to_df()['counters']\n"
        "    print(frame[name + '_BYTES_READ'].sum(), frame[name + '_BYTES_WRITTEN'].sum())\n"
    )
    sums = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=COMPUTING,
    ).stdout.split()
    profile = reading.read(path)
    assert [profile.read, profile.written] == [
        int(sums[0]) + int(sums[2]),
        int(sums[1]) + int(sums[3]),
    ]


def test_what_is_known_of_ior(reading: Reader) -> None:
    """IOR by 2,048 ranks, a file each, 256 MiB in requests of 4 MiB; Darshan's sample of it."""
    profile = reading.read(EXAMPLES / "sample-badost.darshan")
    main = profile.patterns[0]
    assert (main.operation, main.layout, main.spatiality) == (
        "write",
        "file-per-process",
        "contiguous",
    )
    assert (main.request_size, main.files, main.processes) == (4 << 20, 2048, 2048)
    assert main.volume == 2048 * (256 << 20)
    assert (profile.stripe_count, profile.stripe_size) == (1, 1 << 20)


def test_what_is_known_of_vpic(reading: Reader) -> None:
    """VPIC-IO by 2,048 ranks to one file, in strides of 128 MiB."""
    profile = reading.read(EXAMPLES / "example.darshan")
    main = profile.patterns[0]
    assert (main.layout, main.spatiality, main.processes) == ("shared", "strided", 2048)
    assert main.request_size == pytest.approx(128 << 20, rel=1e-6)
    assert {layer.name for layer in profile.layers} == {"POSIX", "MPI-IO", "STDIO"}


def test_dxt_tells_nodes_and_phases(reading: Reader) -> None:
    profile = reading.read(EXAMPLES / "dxt.darshan")
    assert (profile.source, profile.nodes) == ("dxt", 1)
    assert len(profile.phases) >= 3
    assert profile.w_iter is not None
    # What phases hold is what the files' counters say, and no time is made up.
    moved = sum(phase.read + phase.written for phase in profile.phases)
    assert moved == pytest.approx(profile.volume, rel=0.05)


def test_bins_of_a_heat_map_are_transfers() -> None:
    record = {
        "rank": 2,
        "bin_width_seconds": 0.5,
        "write_bins": np.array([0, 8, 0, 4]),
        "read_bins": np.array([1, 0, 0, 0]),
    }
    timeline = Timeline(2.0, 4)
    for one in bin_transfers(record):
        timeline.add(one.begin, one.end, one.volume, rank=one.rank, write=one.write)
    assert timeline.written.between(0.5, 1.0) == pytest.approx(8)
    assert timeline.written.between(1.5, 2.0) == pytest.approx(4)
    assert timeline.read.between(0.0, 0.5) == pytest.approx(1)
    with pytest.raises(InputError, match="damaged"):
        list(bin_transfers(record | {"bin_width_seconds": float("nan")}))


@pytest.mark.parametrize(
    "request_",
    [(0, 1, -9.0, 1.0), (0, 1, 2.0, 1.0), (0, 1, 1.0, 99.0), (0, -1, 1.0, 2.0), (-1, 1, 1.0, 2.0)],
)
def test_requests_that_cannot_be_are_damage(request_: tuple[int, int, float, float]) -> None:
    check_requests(np.array([(0, 1, 1.0, 2.0)], SEGMENT), 10.0)
    with pytest.raises(InputError, match="damaged"):
        check_requests(np.array([request_], SEGMENT), 10.0)


def same(one: Profile, other: Profile) -> bool:
    fields = {field.name for field in dataclasses.fields(Profile)} - {"log", "name"}
    return all(getattr(one, name) == getattr(other, name) for name in fields)


def attempt(reading: Reader, path: Path) -> Profile | str:
    """Return the profile, or the error, which names the file and can be printed."""
    try:
        return reading.read(path)
    except InputError as error:
        message = str(error)
    assert message.startswith(str(path))
    assert message.isprintable()
    return message


@pytest.mark.parametrize("name", ["dxt.darshan", "example.darshan", "ior_hdf5_example.darshan"])
def test_a_log_that_was_cut_is_refused_or_has_lost_nothing_that_is_read(
    name: str, reading: Reader, tmp_path: Path
) -> None:
    whole = (EXAMPLES / name).read_bytes()
    good, path, refused = reading.read(EXAMPLES / name), tmp_path / "cut.darshan", 0
    for k in range(50):
        path.write_bytes(whole[: len(whole) * k // 50])
        outcome = attempt(reading, path)
        refused += isinstance(outcome, str)
        assert isinstance(outcome, str) or same(outcome, good)
    assert refused >= 35


def test_flipped_bits_are_errors_that_name_the_file_or_nothing(
    reading: Reader, tmp_path: Path
) -> None:
    """Some of them kill the process that reads them; the next log is read nevertheless."""
    rng, path = random.Random(1), tmp_path / "flipped.darshan"
    names = ["dxt.darshan", "example.darshan", "ior_hdf5_example.darshan"]
    refused = 0
    for k in range(150):
        data = bytearray((EXAMPLES / names[k % 3]).read_bytes())
        for _ in range(rng.choice((1, 4, 32))):
            data[rng.randrange(len(data) if k % 2 else 1400)] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        refused += isinstance(attempt(reading, path), str)
    assert refused >= 30
    assert reading.read(EXAMPLES / "example.darshan").processes == 2048


def test_a_reader_that_is_killed_is_the_logs_fault_and_is_replaced(
    reading: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading.read(EXAMPLES / "example.darshan")
    child = reading._child
    assert child is not None
    line = reading._line

    def shot(until: float) -> bytes:
        child.kill()
        return line(until)

    os.kill(child.pid, signal.SIGSTOP)
    monkeypatch.setattr(reading, "_line", shot)
    with pytest.raises(InputError, match=r"example\.darshan: reading it killed .*SIGKILL"):
        reading.read(EXAMPLES / "example.darshan")
    monkeypatch.undo()
    assert reading.read(EXAMPLES / "example.darshan").processes == 2048


def test_a_log_that_is_read_for_ever_is_given_up(
    reading: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading.read(EXAMPLES / "example.darshan")
    child = reading._child
    assert child is not None
    os.kill(child.pid, signal.SIGSTOP)
    monkeypatch.setattr(reader, "PATIENCE", 0.1)
    with pytest.raises(InputError, match="took more than"):
        reading.read(EXAMPLES / "example.darshan")
    assert child.returncode is not None


def test_what_is_no_log_is_said(reading: Reader, tmp_path: Path) -> None:
    text = tmp_path / "text.darshan"
    text.write_text("nothing of the kind\n" * 100)
    with pytest.raises(InputError, match=r"text\.darshan: it is not a Darshan log"):
        reading.read(text)
    (tmp_path / "empty.darshan").touch()
    with pytest.raises(InputError, match=r"empty\.darshan has 0 bytes"):
        reading.read(tmp_path / "empty.darshan")
    with pytest.raises(InputError, match="no such file"):
        reading.read(tmp_path / "none.darshan")
    with pytest.raises(InputError, match="names in UTF-8"):
        reading.read(tmp_path / os.fsdecode(b"\xff.darshan"))
    other = bytearray((EXAMPLES / "example.darshan").read_bytes())
    other[:4] = b"9.99"
    (tmp_path / "later.darshan").write_bytes(other)
    with pytest.raises(InputError, match=r"later\.darshan: .*version"):
        reading.read(tmp_path / "later.darshan")


def test_a_missing_pydarshan_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"\.\[darshan\]"):
        Reader()


def test_folders_stand_for_the_logs_below_in_order(tmp_path: Path) -> None:
    for name in ("b/2.darshan", "a/1.darshan", "a/notes.txt", "c.darshan"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    paths = [str(path.relative_to(tmp_path)) for path in logs_in([tmp_path])]
    assert paths == ["a/1.darshan", "b/2.darshan", "c.darshan"]


def test_a_folder_is_read_in_a_stream(tmp_path: Path) -> None:
    """Ten times as many logs take no more memory, in the command or in its child."""
    peaks = {}
    for count in (20, 200):
        folder = tmp_path / str(count)
        folder.mkdir()
        for k in range(count):
            shutil.copy(EXAMPLES / "dxt.darshan", folder / f"{k:04}.darshan")
        peaks[count] = _peaks(folder, tmp_path / "jobs.json")
    for few, many in zip(peaks[20], peaks[200], strict=True):
        assert many < few + MOST_GROWTH


def _peaks(folder: Path, out: Path) -> tuple[int, int]:
    script = (
        "import resource, sys\n"
        "from penstock.cli import main\n"
        "status = main(sys.argv[1:])\n"
        "own, child = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN\n"
        "print(*(1024 * resource.getrusage(who).ru_maxrss for who in (own, child)))\n"
        "sys.exit(status)\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", script, "profile", str(folder), "--workload", str(out)],
        capture_output=True,
        text=True,
        check=True,
        timeout=COMPUTING,
    ).stdout
    jobs = msgspec.json.decode(out.read_bytes())["jobs"]
    assert len(jobs) == int(folder.name)
    own, child = map(int, output.splitlines()[-1].split())
    return own, child
