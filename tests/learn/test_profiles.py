"""Profiles: what counters say of access, what times say of phases, what curves say of mixtures."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.learn.profiles import BasePattern, IoPhase, Profile, phases_of, write_of
from penstock.learn.profiles import mixture as mixtures
from penstock.learn.profiles.files import FileUse, Use, base_patterns, size_class, spatiality
from penstock.learn.profiles.mixture import Base, combine, nearest
from penstock.learn.profiles.timeline import Timeline, w_iter_of
from penstock.model import Curve

KIB, MIB = 1 << 10, 1 << 20
PART = BasePattern(
    operation="write",
    layout="shared",
    spatiality="strided",
    request_size=64 * KIB,
    requests=1000,
    volume=64.0 * KIB * 1000,
    files=1,
    processes=16,
)
PROFILE = Profile(
    log="a.darshan",
    name="a",
    version="3.41",
    start=0.0,
    seconds=100.0,
    processes=16,
    nodes=None,
    executable="a",
    user="1",
    read=0,
    written=64 * KIB * 1000,
    shared_files=1,
    own_files=0,
    layers=(),
    patterns=(PART,),
    read_sizes=(0,) * 10,
    write_sizes=(0,) * 10,
    io_seconds=10.0,
    source="none",
    phases=(),
    w_iter=None,
    heat=None,
    stripe_count=None,
    stripe_size=None,
    notes=(),
)


def written_file(
    *, requests: int, size: int = 1000, consecutive: int = 0, sequential: int = 0, strided: int = 0
) -> FileUse:
    """A file that four ranks wrote."""
    sizes = [0] * 10
    sizes[size_class(size)] = requests
    use = Use(
        bytes=requests * size,
        requests=requests,
        consecutive=consecutive,
        sequential=sequential,
        sizes=sizes,
    )
    return FileUse(read=Use(), write=use, ranks={0, 1, 2, 3}, strided=strided)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (written_file(requests=4), "contiguous"),
        (written_file(requests=104, consecutive=100, sequential=100), "contiguous"),
        (written_file(requests=104, sequential=100, strided=99), "strided"),
        (written_file(requests=104, sequential=100, strided=10), "sequential"),
        (written_file(requests=104, sequential=30, strided=10), "random"),
    ],
)
def test_spatiality_goes_by_what_half_of_the_requests_do(file: FileUse, expected: str) -> None:
    assert spatiality(file, "write", 4) == expected


def test_streams_are_contiguous_though_nobody_counted_their_offsets() -> None:
    file = written_file(requests=104)
    file.ordered = False
    assert spatiality(file, "write", 4) == "contiguous"


def test_volumes_of_base_patterns_add_up_to_the_bytes_that_were_counted() -> None:
    file = written_file(requests=100, size=1 * MIB, consecutive=100)
    file.write.sizes = [40, 0, 0, 0, 60, 0, 0, 0, 0, 0]
    file.common = Counter({1 * MIB: 60})
    parts = base_patterns([file], 4)
    assert math.fsum(part.volume for part in parts) == pytest.approx(100 * MIB)
    large = max(parts, key=lambda part: part.volume)
    # Forty requests below a hundred bytes are next to nothing: all is in the others.
    assert large.requests == 60
    assert large.volume == pytest.approx(100 * MIB, rel=1e-4)


def test_a_file_of_several_ranks_is_shared_and_those_of_one_each_are_not() -> None:
    own = [written_file(requests=10, consecutive=10) for _ in range(4)]
    for rank, file in enumerate(own):
        file.ranks = {rank}
    (part,) = base_patterns(own, 4)
    assert (part.layout, part.files, part.processes) == ("file-per-process", 4, 4)
    (part,) = base_patterns([written_file(requests=10, consecutive=10)], 4)
    assert (part.layout, part.files, part.processes) == ("shared", 1, 4)


def test_bytes_are_where_their_transfer_was() -> None:
    timeline = Timeline(10.0, 4)
    timeline.add([1.0, 7.25], [3.0, 7.25], [200.0, 5.0], rank=1, write=True)
    assert timeline.written.values.sum() == pytest.approx(205.0)
    assert timeline.written.between(1.0, 2.0) == pytest.approx(100.0)
    assert timeline.written.between(7.0, 7.5) == pytest.approx(5.0)
    assert timeline.read.values.sum() == 0
    heat = timeline.heat
    assert sum(heat.written[1]) == pytest.approx(205.0)
    assert sum(map(sum, heat.written)) == pytest.approx(205.0)
    assert heat.ranks == ("0", "1", "2", "3")


def test_rows_of_a_heat_map_share_all_ranks_out() -> None:
    timeline = Timeline(1.0, 100)
    for rank in range(100):
        timeline.add(0.0, 1.0, 1.0, rank=rank, write=False)
    rows = [sum(row) for row in timeline.heat.read]
    sizes = []
    for name in timeline.heat.ranks:
        first, _, last = name.partition("-")
        sizes.append(int(last or first) - int(first) + 1)
    assert sizes == pytest.approx(rows)
    assert sum(sizes) == 100


def test_phases_and_w_iter_of_a_periodic_run() -> None:
    """Twelve checkpoints of 4 s every 60 s, with pauses of 0.2 s inside each."""
    timeline = Timeline(720.0, 8)
    for k in range(12):
        for j in range(4):
            begin = 60.0 * k + 10 + j
            timeline.add(begin, begin + 0.8, 64.0 * MIB, rank=j, write=True)
    phases = timeline.phases()
    assert len(phases) == 12
    assert phases[3].began == pytest.approx(190.0, abs=0.1)
    assert phases[3].seconds == pytest.approx(3.8, abs=0.1)
    assert phases[3].written == pytest.approx(256.0 * MIB, rel=1e-6)
    assert w_iter_of(phases) == pytest.approx(60.0, rel=0.01)


def test_two_phases_are_no_period() -> None:
    two = (
        IoPhase(began=0.0, ended=1.0, read=1.0, written=0.0),
        IoPhase(began=5.0, ended=9.0, read=0.0, written=1.0),
    )
    assert w_iter_of(two) is None


def test_a_grid_takes_no_more_memory_for_more_requests() -> None:
    timeline = Timeline(1e6, 4)
    rng = np.random.default_rng(1)
    begin = rng.uniform(0, 1e6, 100_000)
    timeline.add(begin, begin + 1.0, np.ones(100_000), rank=0, write=True)
    assert timeline.written.values.sum() == pytest.approx(100_000)
    assert len(timeline.written.values) <= 1 << 16


def test_a_job_is_its_gaps_and_phases() -> None:
    phases = (
        IoPhase(began=10.0, ended=14.0, read=0.0, written=5.0),
        IoPhase(began=20.0, ended=21.0, read=3.0, written=0.0),
    )
    assert phases_of(replace(PROFILE, phases=phases)) == ((10.0, 4.0), (6.0, 1.0), (79.0, 0.0))
    assert phases_of(PROFILE) == ((90.0, 10.0),)


def test_the_write_of_a_profile_is_its_largest_phase_by_those_who_write() -> None:
    phases = (
        IoPhase(began=10.0, ended=14.0, read=0.0, written=16.0 * MIB),
        IoPhase(began=20.0, ended=21.0, read=0.0, written=4.0 * MIB),
    )
    write = write_of(replace(PROFILE, nodes=4, phases=phases))
    assert (write.nodes, write.cores, write.burst, write.shared) == (4, 4, MIB, True)
    # One process that writes is on one node, however many there are.
    alone = replace(PART, processes=1)
    write = write_of(replace(PROFILE, nodes=4, patterns=(alone,)))
    assert (write.nodes, write.cores, write.burst) == (1, 1, PROFILE.written)


def test_nodes_that_nobody_told_are_asked_for_and_not_made_up() -> None:
    with pytest.raises(InputError, match="--cores"):
        write_of(PROFILE)
    assert write_of(PROFILE, cores=8).nodes == 2
    reads = replace(PART, operation="read")
    with pytest.raises(InputError, match="nothing was written"):
        write_of(replace(PROFILE, nodes=1, patterns=(reads,)))


def base(name: str, *, size: int = 64 * KIB, curve: dict[int, float], **changes: object) -> Base:
    fields = {
        "operation": "write",
        "layout": "shared",
        "contiguous": False,
        "processes": 16,
        **changes,
    }
    return Base(name=name, request_size=size, curve=Curve.of(curve), **fields)  # type: ignore[arg-type]


def test_times_of_parts_add_up() -> None:
    """b(n) = V / sum of V_i / b_i(n): thesis forwarding, 5.3."""
    slow = base("slow", curve={0: 10.0, 2: 40.0, 4: 50.0})
    fast = base("fast", size=MIB, curve={0: 100.0, 2: 60.0})
    other = replace(PART, request_size=MIB, volume=3 * PART.volume)
    combined = combine([PART, other], [slow, fast])
    assert combined.curve.counts == (0, 2)
    assert combined.curve.bandwidth(0) == pytest.approx(4 / (1 / 10 + 3 / 100))
    assert combined.curve.bandwidth(2) == pytest.approx(4 / (1 / 40 + 3 / 60))
    assert combined.octaves == 0
    assert not combined.guess


def test_the_nearest_pattern_is_alike_before_it_is_of_the_same_size() -> None:
    near = base("near", size=8 * KIB, curve={1: 1.0})
    same_size = base("same size", layout="file-per-process", curve={1: 1.0})
    match = nearest(PART, [same_size, near])
    assert match.base is near
    assert match.octaves == 3
    assert match.differences == ("8x smaller requests",)
    read = nearest(replace(PART, operation="read"), [near])
    assert "measured as writes" in read.differences


def test_a_curve_from_afar_is_called_a_guess() -> None:
    far = base("far", size=KIB, processes=256, curve={1: 1.0})
    assert combine([PART], [far]).guess


def test_what_cannot_be_combined_is_said() -> None:
    known = base("a", curve={1: 1.0})
    with pytest.raises(InputError, match="moved no bytes"):
        combine([replace(PART, volume=0.0)], [known])
    with pytest.raises(InputError, match="penstock explore"):
        combine([PART], [])
    other = base("b", size=MIB, curve={2: 1.0})
    with pytest.raises(InputError, match="different numbers"):
        combine([PART, replace(PART, request_size=MIB)], [known, other])


def test_every_pattern_of_mare_nostrum_is_its_own_nearest() -> None:
    known = mixtures.shipped()
    assert len(known) == 189
    for one in known:
        part = replace(
            PART,
            layout=one.layout,
            spatiality="contiguous" if one.contiguous else "strided",
            request_size=one.request_size,
            processes=one.processes,
        )
        combined = combine([part], known)
        assert combined.octaves == 0
        assert combined.matches[0].base.name.split() == one.name.split()
