"""Records of a site with several file systems: phases of different ones do not contend."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from records.random_days import header, write

from penstock.model import (
    Admit,
    Event,
    FileSystem,
    Job,
    JobEnded,
    JobStarted,
    PhaseBegan,
    PhaseEnded,
    Site,
)
from penstock.policies.sharing.exclusive_fcfs import ExclusiveFcfs
from penstock.records import Entry, Record
from penstock.sim import engine
from penstock.sim.checks import check
from penstock.sim.formats import from_record

MB = 1e6
HOME, SCRATCH = FileSystem(name="home", roots=("/home",)), FileSystem(name="scratch")
TWO = Site(resources=1, direct=True, file_systems=(HOME, SCRATCH))
JOBS = {name: Job(id=name, serial=serial) for serial, name in enumerate("abc")}


def began(time: float, job: str, *file_systems: int, resumes: bool = False) -> Entry:
    event = PhaseBegan(time=time, job=job, resources=file_systems, resumes=resumes)
    actions = [Admit(job=job, resource=each, weight=1.0, max_share=1.0) for each in file_systems]
    return Entry(event=event, actions=actions)


def ended(time: float, job: str, *file_systems: int, moved: float = 0.0) -> list[Entry]:
    """The end of a phase; without bytes it yields its turns."""
    events: list[Event] = [
        PhaseEnded(time=time, job=job, resource=each, io=1.0 if moved else 0.0)
        for each in file_systems
    ]
    entries = [Entry(event=event) for event in events]
    if moved:
        entries[-1] = Entry(event=events[-1], bytes=round(moved))
    return entries


def recorded(folder: Path, entries: Sequence[Entry], site: Site = TWO) -> Record:
    jobs = sorted({each.event.job for each in entries if isinstance(each.event, PhaseBegan)})
    events = [
        *(Entry(event=JobStarted(time=0.0, job=JOBS[job])) for job in jobs),
        *entries,
        *(Entry(event=JobEnded(time=100.0, job=job)) for job in jobs),
    ]
    return Record(*write(folder, header(site=site, source="live", mode="enforce"), events))


def test_a_record_keeps_the_file_systems_of_the_site_and_of_phases(tmp_path: Path) -> None:
    record = recorded(tmp_path, [began(1.0, "a", 0), *ended(5.0, "a", 0, moved=MB)])
    assert record.header.site.file_systems == (HOME, SCRATCH)
    assert record.header.turn_site.resources == 2


@pytest.mark.parametrize(("second", "last"), [(0, 20.0), (1, 11.0)], ids=["same", "different"])
def test_only_phases_on_the_same_file_system_contend(
    tmp_path: Path, second: int, last: float
) -> None:
    """Two phases of 9 s and 10 s that begin at second 1, simulated with one turn at a time."""
    waits = replace(began(1.0, "b", second), actions=())
    entries = [
        began(1.0, "a", 0),
        waits if second == 0 else began(1.0, "b", second),
        *ended(10.0, "a", 0, moved=9 * MB),
        *ended(last, "b", second, moved=10 * MB),
    ]
    if second == 0:
        turn = Admit(job="b", resource=0, weight=1.0, max_share=1.0)
        entries[2] = replace(entries[2], actions=[turn])
    recording = from_record.load(recorded(tmp_path, entries))
    workload, site = recording.workload, recording.run.site
    assert [workload.resources_of(j) for j in range(2)] == [(0,), (second,)]
    check(workload, site)
    run = engine.simulate(workload, ExclusiveFcfs(), site=site)
    assert float(run.end[np.flatnonzero(workload.io)].max()) == pytest.approx(last)


def test_phases_on_different_file_systems_are_alone(tmp_path: Path) -> None:
    """Their bytes per second are those of their file system, not of half of it."""
    entries = [
        began(1.0, "a", 0),
        began(1.0, "b", 1),
        *ended(11.0, "a", 0, moved=10 * MB),
        *ended(11.0, "b", 1, moved=1000 * MB),
        # Both on scratch at once: each could have used all of it.
        began(20.0, "a", 1),
        began(20.0, "c", 1),
        *ended(24.0, "a", 1, moved=200 * MB),
        *ended(24.0, "c", 1, moved=200 * MB),
    ]
    recording = from_record.load(recorded(tmp_path, entries))
    lengths = {
        recording.workload.id(j): recording.workload.io[
            slice(*recording.workload.offsets[j : j + 2])
        ].tolist()
        for j in range(3)
    }
    assert lengths["a"][:2] == pytest.approx([10.0, 2.0])  # 10 MB at 1 MB/s, 200 at 100
    assert lengths["b"][0] == pytest.approx(10.0)
    assert lengths["c"][0] == pytest.approx(2.0)


def test_a_phase_that_comes_to_use_another_file_system_is_one_phase_on_both(
    tmp_path: Path,
) -> None:
    entries = [
        began(1.0, "a", 0),
        *ended(3.0, "a", 0),
        began(3.0, "a", 0, 1, resumes=True),
        *ended(11.0, "a", 0, 1, moved=10 * MB),
    ]
    recording = from_record.load(recorded(tmp_path, entries))
    assert recording.iterations == 1
    assert recording.workload.resources_of(0) == (0, 1)


def test_a_record_without_file_systems_is_of_one(tmp_path: Path) -> None:
    entries = [began(1.0, "a", 0), *ended(5.0, "a", 0, moved=4 * MB)]
    record = recorded(tmp_path, entries, Site(resources=4, direct=True))
    assert record.header.turn_site == record.header.site
    recording = from_record.load(record)
    assert recording.workload.resources_of(0) == (0,)
    assert recording.run.site.resources == 4
