"""A part of a record has one mode: what-if must know which policy ran."""

from pathlib import Path

import pytest
from live.controller.turn_harness import TurnHarness
from records.random_days import header, run, write
from records.test_records import a_day

from penstock.live.protocol import messages
from penstock.model import PhaseEnded, Woke
from penstock.records import Entry, Record, RecordWriter, replay
from penstock.records.lines import decode, encode


def test_a_change_of_mode_begins_a_part(tmp_path: Path) -> None:
    made = header("fair-share", mode="observe")
    with RecordWriter(tmp_path, made, flush=0.01) as writer:
        for entry in run(made, a_day()):
            if entry.event.time == 10.0:
                writer.set_modes("enforce", {"ann": "observe"})
            writer.write(entry.event, entry.actions)
        writer.set_modes("off", {})  # no event follows: no part without lines
    record = Record(*sorted(tmp_path.iterdir()))
    assert [h.mode for h in record.headers] == ["observe", "enforce"]
    assert [h.user_modes for h in record.headers] == [{}, {"ann": "observe"}]
    assert [h.part for h in record.headers] == [1, 2]
    assert [s.job.id for s in record.headers[1].running] == ["j0", "j1"]
    assert record.lost == 0
    assert replay(record).first_difference is None


def test_a_mode_that_stays_begins_none(tmp_path: Path) -> None:
    made = header("fair-share", mode="observe")
    with RecordWriter(tmp_path, made, flush=0.01) as writer:
        writer.write(Woke(time=1.0))
        writer.set_modes("enforce", {})
        writer.set_modes("observe", {})
        writer.set_modes("observe", {})
        writer.write(Woke(time=2.0))
    (path,) = tmp_path.iterdir()
    assert Record(path).header.mode == "observe"
    (tmp_path / "first").mkdir()
    with RecordWriter(tmp_path / "first", made, flush=0.01) as writer:
        writer.set_modes("enforce", {})
        writer.write(Woke(time=1.0))
    (path,) = (tmp_path / "first").iterdir()
    assert Record(path).header.mode == "enforce", "before its first line"


def test_a_controller_records_its_modes(tmp_path: Path) -> None:
    harness = TurnHarness("set-10", mode="observe")
    service = harness.turn_service
    assert (service.header.mode, service.header.user_modes) == ("observe", {})
    with RecordWriter(tmp_path, service.header, flush=0.01) as writer:
        service.record(writer)
        harness.start("a")
        service.set_mode(messages.SetMode(mode="enforce", user="ann"))
        harness.start("b")
        service.set_kill_switch(True)
        harness.start("c")
        service.set_kill_switch(False)
        service.set_site_mode("advise")
        harness.start("d")
        service.open_gates()  # the controller ends: nobody changed the mode
        service.ended(harness.jobs["d"])
    headers = Record(*sorted(tmp_path.iterdir())).headers
    assert [h.mode for h in headers] == ["observe", "observe", "off", "advise"]
    assert [h.user_modes for h in headers] == [{}, *3 * [{"ann": "enforce"}]]


@pytest.mark.parametrize("seconds", [None, 0.125])
def test_the_seconds_of_a_phase_come_back(tmp_path: Path, seconds: float | None) -> None:
    event = PhaseEnded(time=3.0, job="a", resource=0, io=1.0)
    entry = Entry(event=event, bytes=10, seconds=seconds)
    assert decode(encode(entry)) == entry
    (path,) = write(tmp_path, header(), [entry])
    assert next(iter(Record(path))).seconds == seconds


def test_a_record_without_modes_is_read(tmp_path: Path) -> None:
    """Version 0.1.0 wrote none."""
    (path,) = write(tmp_path, header(mode="observe"), run(header(), a_day()))
    text = path.read_text()
    path.write_text(text.replace('"mode":"observe",', "").replace('"user_modes":{},', ""))
    assert Record(path).header.mode is None
