"""Each file system has a gate: a call waits at that of its file, and at no other."""

import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from live.client.waiting_processes import LONGEST, WAIT, Closed, closed

from penstock.identities import FileSystemId
from penstock.live.agent.page_server import PageServer
from penstock.live.agent.phase_sampler import PhaseSampler
from penstock.live.protocol._page_layout import (
    CONTROL_BYTES,
    FIRST_ROOT,
    FIRST_SLOT,
    MOVED,
    OTHER_GATES,
    ROOT_ENTRY_BYTES,
    SLOT_FIELDS,
)
from penstock.live.protocol.shared_page import SharedPages

MIB = 1 << 20
_WRITTEN = FIRST_SLOT + SLOT_FIELDS["write_bytes"]
FIRST, SECOND = FileSystemId(0), FileSystemId(1)
OPEN = "first, second = (os.open(path, os.O_CREAT | os.O_RDWR) for path in ('f', '../second/f'))\n"


@pytest.fixture
def second(root: Path) -> Path:
    """A root of another file system."""
    path = root.parent / "second"
    path.mkdir()
    return path


@pytest.fixture
def job(root: Path, second: Path, tmp_path: Path) -> Iterator[Closed]:
    with closed(root, tmp_path, second) as job:
        yield job


def test_a_call_waits_at_the_gate_of_its_file_system_alone(job: Closed) -> None:
    job.pages.open_gate([FIRST])
    process = job.python(OPEN + "os.write(first, MIB); os.write(second, 2 * MIB)")
    job.until_it_waits(process)
    assert job.pages.bytes_by_file_system() == {FIRST: MIB}
    assert PhaseSampler(job.pages).waiting_on() == {SECOND}
    job.pages.close_gate(LONGEST, [FIRST])
    job.pages.open_gate([SECOND])
    assert process.wait(WAIT) == 0
    assert job.pages.bytes_by_file_system() == {FIRST: MIB, SECOND: 2 * MIB}
    assert job.pages.moved_bytes() == 3 * MIB
    assert job.pages.total("waits") == 1


def test_a_gate_that_opens_elsewhere_does_not_end_a_wait(job: Closed) -> None:
    process = job.python(OPEN + "os.write(second, MIB)")
    job.until_it_waits(process)
    job.pages.open_gate([FIRST])
    job.until_it_waits(process)
    assert job.pages.bytes_by_file_system() == {}
    job.let_go(process)


def test_a_copy_between_file_systems_waits_at_both_gates(job: Closed) -> None:
    program = "os.write(first, MIB); os.copy_file_range(first, second, 1 << 20, 0)"
    job.pages.open_gate([FIRST])
    process = job.python(OPEN + program)
    job.until_it_waits(process)
    assert PhaseSampler(job.pages).waiting_on() == {SECOND}
    job.let_go(process)
    assert job.pages.bytes_by_file_system() == {FIRST: 2 * MIB, SECOND: MIB}


def test_a_marked_phase_waits_where_its_first_call_is(job: Closed) -> None:
    """A mark does not say which file system the phase will use."""
    job.pages.open_gate([SECOND])
    program = "import penstock\nwith penstock.phase(): os.write(second, MIB)"
    process = job.python(OPEN + program)
    assert process.wait(WAIT) == 0
    assert job.pages.phase_marks() == (1, 1)
    assert job.pages.total("waits") == 0


def test_a_file_belongs_to_the_longest_root_that_it_is_below(root: Path, tmp_path: Path) -> None:
    """As a mount below another one."""
    (root / "mount").mkdir()
    with closed(root, tmp_path, root / "mount") as job:
        job.pages.open_gate([FIRST])
        process = job.python(
            "f, g = (os.open(path, os.O_CREAT | os.O_RDWR) for path in ('mount-not', 'mount/f'))\n"
            "os.write(f, MIB); os.write(g, MIB)"
        )
        job.until_it_waits(process)
        assert PhaseSampler(job.pages).waiting_on() == {SECOND}
        job.let_go(process)
        assert job.pages.bytes_by_file_system() == {FIRST: MIB, SECOND: MIB}


def test_copies_of_descriptors_and_children_keep_the_file_system(job: Closed) -> None:
    program = "d = os.dup(second)\nif os.fork() == 0: os.write(d, MIB); os._exit(0)\nos.wait()"
    job.pages.open_gate([SECOND])
    assert job.python(OPEN + program).wait(WAIT) == 0
    assert job.pages.bytes_by_file_system() == {SECOND: MIB}


@pytest.mark.parametrize("which", ["control", "counters"])
def test_an_agent_of_before_file_systems_has_one_gate_for_all_roots(
    root: Path, second: Path, tmp_path: Path, which: str
) -> None:
    """Its pages are shorter. A number that means nothing there is not believed."""
    with (
        SharedPages([root, second], longest_wait=LONGEST) as pages,
        PageServer(pages, tmp_path / "agent.sock") as agent,
    ):
        own = {"control": pages.control_fd, "counters": pages.counters_fd}[which]
        size = {"control": OTHER_GATES, "counters": MOVED}[which]
        older = os.memfd_create("older")
        os.ftruncate(older, size)
        os.pwrite(older, os.pread(own, size, 0), 0)
        if which == "control":
            os.pwrite(older, struct.pack("<I", OTHER_GATES), 12)
            os.pwrite(older, struct.pack("<I", 1), FIRST_ROOT + ROOT_ENTRY_BYTES + 4)
        setattr(pages, f"{which}_fd", older)
        try:
            program = f"import os; MIB = bytes({MIB})\n{OPEN}os.write(first, MIB)\n"
            status = os.spawnve(
                os.P_WAIT,
                sys.executable,
                [sys.executable, "-c", f"import os; os.chdir({str(root)!r})\n{program}"],
                os.environ | agent.environment(),
            )
        finally:
            setattr(pages, f"{which}_fd", own)
        written = pages.total("write_bytes")
        if which == "counters":
            written = int.from_bytes(os.pread(older, 8, _WRITTEN), "little")
        os.close(older)
        assert status == 0
        assert written == MIB


def test_a_page_says_how_large_it_is(pages: SharedPages) -> None:
    assert struct.unpack("<I", os.pread(pages.control_fd, 4, 12)) == (CONTROL_BYTES,)
