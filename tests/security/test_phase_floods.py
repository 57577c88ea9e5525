"""A job that reports phases without end fills no record: its own reports wait."""

import os
import socket
import threading
import time
from pathlib import Path

import pytest
from limits import HANG

from penstock.live.controller.pace import PHASES, Pace
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol import messages
from penstock.live.protocol.client import decode_line, encode_line
from penstock.live.protocol.job_record import JobRecord
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.users import name_of

FLOOD = 20_000
pytestmark = pytest.mark.security


def test_a_burst_passes_and_then_a_number_per_second() -> None:
    now = 100.0
    pace = Pace(PHASES, clock=lambda: now)
    assert [pace.delay() for _ in range(PHASES.burst)] == [0.0] * PHASES.burst
    begins = []
    for _ in range(200):
        now += pace.delay()  # its session reads no more until then
        begins.append(now)
    assert begins[-1] - begins[0] == pytest.approx(199 / PHASES.per_second)
    now += 1000.0
    assert [pace.delay() for _ in range(PHASES.burst)] == [0.0] * PHASES.burst


def test_a_flood_of_phases_is_bounded_in_the_record(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "s")
    (tmp_path / "data").mkdir()
    deployment = Deployment(state=str(state.folder), roots=[str(tmp_path / "data")], io_nodes=0)
    launcher.up(deployment)
    try:
        began = time.monotonic()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as job:
            job.connect(str(state.controller))
            begin = messages.BeginJob(
                name="flood", pid=os.getpid(), command=["x"], user=name_of(os.getuid())
            )
            job.sendall(encode_line(begin))
            id = decode_line(job.makefile("rb").readline(), messages.JobAccepted).job
            phases = b"".join(
                encode_line(messages.PhaseBegan(phase=k))
                + encode_line(messages.PhaseEnded(phase=k, bytes=1, seconds=0.0, waited=0.0))
                for k in range(1, FLOOD)
            )
            # It is not read to its end.
            flooding = threading.Thread(target=send, args=[job, phases], daemon=True)
            flooding.start()
            counted = 0
            while counted < PHASES.burst and time.monotonic() - began < HANG:
                counted = status(state, id).phases
            time.sleep(0.5)
            counted = status(state, id).phases
            job.shutdown(socket.SHUT_RDWR)
            most = PHASES.burst + PHASES.per_second * (time.monotonic() - began) + 1
            assert PHASES.burst <= counted <= most
            assert counted < FLOOD - 1
        flooding.join(HANG)
        assert not flooding.is_alive()
    finally:
        launcher.down(state)
    size = sum(path.stat().st_size for path in state.records.rglob("*") if path.is_file())
    assert size < 1000 * most


def send(job: socket.socket, text: bytes) -> None:
    try:
        job.sendall(text)
    except OSError:
        return


def status(state: StateDirectory, id: str) -> JobRecord:
    answer = launcher.ask(state, messages.GetStatus(), messages.Status)
    (record,) = (job for job in answer.jobs if job.id == id)
    return record
