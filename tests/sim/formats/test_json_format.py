"""Workload files: what is written is read again exactly, and anything else is an InputError."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from strategies import examples, workloads

from penstock.errors import InputError
from penstock.model import Site
from penstock.sim import formats, generators
from penstock.sim.formats import free_memory, json_format
from penstock.sim.workload import Workload

ARRAYS = (
    *("compute", "io", "offsets", "release", "nodes", "max_share", "resource_offsets"),
    *("resources", "barrier", "after", "profile"),
)
GOOD: dict[str, Any] = {
    "horizon": 100,
    "jobs": [
        {"id": "a", "release": 1, "nodes": 2, "phases": [[5, 1], [5, 1.5]]},
        {"id": "b", "pack": "p", "hints": {"profile": 3}, "phases": [[2, 1]]},
        {"id": "c", "curve": {"0": 2, "1": 1}, "phases": [[2, 1]]},
        {"id": 7, "after": "p", "user": "eve", "max_share": 0.5, "phases": [["1 min", 3]]},
    ],
}


def same(a: Workload, b: Workload) -> None:
    for name in ARRAYS:
        left, right = getattr(a, name), getattr(b, name)
        assert (left is None) == (right is None), name
        if left is not None:
            assert left.dtype == right.dtype, name
            np.testing.assert_array_equal(left, right, err_msg=name)
    assert a.horizon == b.horizon
    assert list(a.jobs()) == list(b.jobs())


def site_of(workload: Workload) -> Site:
    return Site(resources=int(workload.resources.max()) + 1)


@pytest.mark.parametrize("suffix", [".json", ".npz"])
@settings(examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(workload=workloads(resources=3, caps=True, times=st.floats(1e-6, 1e9)))
def test_a_round_trip_is_exact(tmp_path: Path, suffix: str, workload: Workload) -> None:
    file = tmp_path / f"w{suffix}"
    formats.write(workload, file)
    same(formats.read(file, site_of(workload)), workload)


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_everything_a_workload_has_survives(tmp_path: Path, suffix: str) -> None:
    workload = Workload(
        compute=[1.0, 2.0, 3.0, 1 / 3],
        io=[0.1, 0.2, 0.0, 1e-320],
        offsets=[0, 2, 3, 4],
        release=[0.0, 1e-9, 7.25],
        ids=["a", "b \N{SNOWMAN}", "10"],
        nodes=[1, 2**40, 3],
        max_share=[1.0, 0.3, 1.0],
        resource_offsets=[0, 2, 3, 4],
        resources=[2, 0, 1, 0],
        barrier=[0, 1, -1],
        after=[-1, 0, 1],
        horizon=12.5,
        details=[
            {"user": "eve", "executable": "sim", "processes": 128},
            {"hints": {"profile": 10.0, "queue": "fast"}},
            {},
        ],
    )
    file = tmp_path / f"w{suffix}"
    formats.write(workload, file)
    again = formats.read(file, Site(resources=3))
    same(again, workload)
    assert again.ids == workload.ids
    assert [dict(d) for d in again.details or ()] == workload.details


def test_a_generated_workload_survives_with_its_classes(tmp_path: Path) -> None:
    workload = generators.PRESETS["io-sets"].make(jobs=9, seed=1, horizon=500.0)
    for suffix in (".json", ".npz"):
        formats.write(workload, tmp_path / f"w{suffix}")
        again = formats.read(tmp_path / f"w{suffix}")
        same(again, workload)
        assert again.ids is None
        assert again.details is None


def test_json_defaults(tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    file.write_text('{"jobs": [{"phases": [[1, 2]]}]}')
    job = next(iter(formats.read(file).jobs()))
    assert (job.id, job.nodes, job.max_share, job.w_iter) == ("0", 1, 1.0, 3.0)


def test_words_and_volumes(tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    jobs = [
        {"id": "one", "release": "1 min", "phases": [["5 min", "12 GiB"], [1, "500 ms"]]},
        {"id": "two", "resources": [0, 1], "phases": [[1, "12 GiB"]]},
    ]
    file.write_text(json.dumps({"horizon": "2 h", "jobs": jobs}))
    workload = formats.read(file, Site(resources=2, bandwidth=2 * 2**30))
    assert workload.horizon == 7200
    assert workload.release.tolist() == [60, 0]
    assert workload.compute.tolist() == [300, 1, 1]
    # Twelve gibibytes over two resources of 2 GiB/s each are three seconds on both.
    assert workload.io.tolist() == [6, 0.5, 3]
    with pytest.raises(InputError, match=r"job 'one', phases\[0\], io .* set site.bandwidth"):
        formats.read(file, Site(resources=2))


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    file.write_bytes(b'\xef\xbb\xbf{"jobs": [{"phases": [[1, 2]]}]}')
    assert len(formats.read(file)) == 1


def test_long_lists_of_phases_are_read_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_format, "PIECE", 64)
    rows: list[list[Any]] = [[i, i / 8] for i in range(1, 200)]
    file = tmp_path / "w.json"
    for text in (
        json.dumps({"jobs": [{"phases": rows}]}),
        json.dumps({"jobs": [{"phases": rows}]}, indent=2),
    ):
        file.write_text(text)
        workload = formats.read(file)
        assert workload.compute.tolist() == [row[0] for row in rows]
        assert workload.io.tolist() == [row[1] for row in rows]
    rows[150][1] = "soon"
    file.write_text(json.dumps({"jobs": [{"phases": rows}]}))
    with pytest.raises(InputError, match=r"job '0', phases\[150\], io: 'soon' is not a duration"):
        formats.read(file)
    file.write_text(json.dumps({"jobs": [{"phases": [[1, "]," * 100]]}]}))
    with pytest.raises(InputError):
        formats.read(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"jobs": [{"id": "a", "phases": [[1, 2], [1', "ends too early"),
        ('{"jobs":\n [{"id": "a", "phases": [[1, NaN]]}]}', "line 2 has NaN"),
        ('{"jobs": [{"id": "a", "phases": [[1, -Infinity]]}]}', "has Infinity"),
        ("{'jobs': []}", "line 1 is not valid JSON"),
        ('{"jobs": []} trailing', "trailing characters"),
        ("\x00\x01\x02", "not valid JSON"),
        ('{"jobs": ' + "[" * 100_000, "nested too deeply"),
        ('{"jobs": []}', "jobs is empty; give at least one"),
        ("[]", "expected an object, got array"),
        ("{}", "'jobs' is missing; give a list of jobs"),
        ('{"job": []}', "unknown key 'job'; did you mean 'jobs'"),
        ('{"jobs": [3]}', r"jobs\[0\]: expected an object, got int"),
        ('{"jobs": [{"id": "a"}]}', "job 'a': 'phases' is missing"),
        ('{"jobs": [{"id": "a", "phases": []}]}', "job 'a' has no phases"),
        ('{"jobs": [{"id": "a", "phasess": []}]}', "job 'a': unknown key 'phasess'; did you"),
        ('{"jobs": [{"id": "a", "phases": {}}]}', "job 'a', phases: expected array"),
        ('{"jobs": [{"id": "a", "phases": [[1, 2], [3]]}]}', r"job 'a', phases\[1\]: expected ar"),
        ('{"jobs": [{"id": "a", "phases": [[1, 2, 3]]}]}', r"job 'a', phases\[0\]"),
        ('{"jobs": [{"id": "a", "phases": [[1, null]]}]}', r"job 'a', phases\[0\], io: expected"),
        ('{"jobs": [{"id": "a", "phases": [[true, 1]]}]}', r"job 'a', phases\[0\], compute: exp"),
        ('{"jobs": [{"id": "a", "phases": [[1, -1]]}]}', r"job 'a', phases\[0\], io is -1; give"),
        ('{"jobs": [{"id": "a", "phases": [[1, 1e999]]}]}', r"job 'a', phases\[0\], io: Number"),
        ('{"jobs": [{"id": "a", "phases": [[1e308, 1], [1e308, 1]]}]}', "add up to inf s"),
        ('{"jobs": [{"id": "a", "phases": [["1 m", 1]]}]}', r"phases\[0\], compute: '1 m' is not"),
        ('{"jobs": [{"id": "a", "phases": [[0, 0]]}]}', "job 'a' does nothing"),
        ('{"jobs": [{"id": [], "phases": [[1, 1]]}]}', r"jobs\[0\], id: expected .*; give a str"),
        ('{"jobs": [{"id": "a", "nodes": "x", "phases": [[1, 1]]}]}', "job 'a', nodes: .*whole"),
        ('{"jobs": [{"id": "a", "nodes": 0, "phases": [[1, 1]]}]}', "job 'a' has nodes = 0"),
        ('{"jobs": [{"id": "a", "nodes": 1e30, "phases": [[1, 1]]}]}', "job 'a', nodes"),
        (
            '{"jobs": [{"id": "a", "nodes": 1000000000000000000000000000000, "phases": [[1, 1]]}]}',
            "job 'a', nodes",
        ),
        ('{"jobs": [{"id": "a", "release": -1, "phases": [[1, 1]]}]}', "job 'a', release is -1"),
        ('{"jobs": [{"id": "a", "release": "x", "phases": [[1, 1]]}]}', "job 'a', release: 'x'"),
        ('{"jobs": [{"id": "a", "max_share": 2, "phases": [[1, 1]]}]}', "job 'a', max_share is 2"),
        ('{"jobs": [{"id": "a", "resources": [1], "phases": [[1, 1]]}]}', "set site.resources"),
        ('{"jobs": [{"id": "a", "resources": [], "phases": [[1, 1]]}]}', "has no resources"),
        ('{"jobs": [{"id": "a", "resources": [0, 0], "phases": [[1, 1]]}]}', "resource twice"),
        ('{"jobs": [{"id": "a", "resources": [4294967296], "phases": [[1, 1]]}]}', "resources"),
        ('{"jobs": [{"id": "a", "after": "p", "phases": [[1, 1]]}]}', "after: no job is in a pack"),
        (
            '{"jobs": [{"id": "a", "pack": "one", "phases": [[1, 1]]},'
            '{"id": "b", "after": "onne", "phases": [[1, 1]]}]}',
            "job 'b', after: unknown pack 'onne'; did you mean 'one'",
        ),
        (
            '{"jobs": [{"id": "a", "pack": "p", "after": "p", "phases": [[1, 1]]}]}',
            "packs wait for each other",
        ),
        ('{"jobs": [{"id": "a", "hints": {"x": []}, "phases": [[1, 1]]}]}', "job 'a', hints"),
        (
            '{"jobs": [{"id": "a", "curve": 3, "phases": [[1, 1]]}]}',
            "curve: expected an obj",
        ),
        ('{"jobs": [{"id": "a", "curve": {}, "phases": [[1, 1]]}]}', "curve needs at least one"),
        (
            '{"jobs": [{"id": "a", "curve": {"1": 0}, "phases": [[1, 1]]}]}',
            "bandwidth 0 at 1",
        ),
        ('{"jobs": [{"id": "a", "curve": {"2": -1}, "phases": [[1, 1]]}]}', "bandwidth -1 at 2"),
        (
            '{"jobs": [{"id": "a", "curve": {"x": 1}, "phases": [[1, 1]]}]}',
            "'x' is not a number of",
        ),
        ('{"jobs": [{"id": "a", "curve": {"1": 1, "01": 1}, "phases": [[1, 1]]}]}', "given twice"),
        ('{"jobs": [{"id": "a", "processes": 0, "phases": [[1, 1]]}]}', "job 'a', processes"),
        (
            '{"jobs": [{"id": "1", "phases": [[1, 1]]}, {"id": 1, "phases": [[1, 1]]}]}',
            r"jobs\[1\].id '1' is used twice",
        ),
        ('{"horizon": 0, "jobs": [{"id": "a", "phases": [[1, 1]]}]}', "horizon is 0"),
        ('{"horizon": [], "jobs": [{"id": "a", "phases": [[1, 1]]}]}', "horizon: .*; give sec"),
        ('{"horizon": "x", "jobs": [{"id": "a", "phases": [[1, 1]]}]}', "horizon: 'x' is not a"),
    ],
)
def test_wrong_json(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "w.json"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        formats.read(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert "\n" not in str(caught.value)


def test_bytes_that_are_not_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    for data in (
        b'{"jobs": [{"id": "\xff", "phases": [[1, 1]]}]}',
        b'{"jobs": [{"id": "a", "phases": [[1, "\xff"]]}]}',
        '{"jobs": []}'.encode("utf-16"),
    ):
        file.write_bytes(data)
        with pytest.raises(InputError, match=str(file)):
            formats.read(file)


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty.json").touch()
    (tmp_path / "notes.txt").write_text("{}")
    (tmp_path / "dir.json").mkdir()
    (tmp_path / "loop.json").symlink_to("loop.json")
    os.mkfifo(tmp_path / "pipe.json")
    for name, message in (
        ("nowhere.json", "no such file"),
        ("empty.json", "is empty"),
        ("notes.txt", "ends in none of .json, .npz, .csv, .swf"),
        ("dir.json", "is a directory"),
        ("pipe.json", "not a regular file"),
        ("loop.json", "cannot be read"),
        ("x" * 300 + ".json", "cannot be read"),
        ("nul\0byte.json", "cannot be a file's name"),
    ):
        with pytest.raises(InputError, match=message):
            formats.read(tmp_path / name)
    file = tmp_path / "locked.json"
    file.write_text("{}")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="permission denied"):
        formats.read(file)


def test_a_file_too_large_for_memory_is_refused_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "w.json"
    file.write_text(json.dumps({"jobs": [{"phases": [[1, 1]] * 1000}]}, separators=(",", ":")))
    size = file.stat().st_size
    # Too little for the text, then enough for it but too little for the arrays.
    for free in (size, 16_000):
        monkeypatch.setattr(free_memory, "available", lambda free=free: free)
        with pytest.raises(InputError, match=r"w\.json of .* does not fit in memory .* \.npz"):
            formats.read(file)


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = generators.PRESETS["io-sets"].make(jobs=3, seed=1, horizon=50.0)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(json_format, "_job", fail)
    with pytest.raises(OSError, match="No space"):
        formats.write(workload, tmp_path / "w.json")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match=r"ends in none of \.json, \.npz"):
        formats.write(workload, tmp_path / "w.csv")
    with pytest.raises(InputError, match="no directory"):
        formats.write(workload, tmp_path / "missing" / "w.json")


def test_written_files_have_the_usual_mode(tmp_path: Path) -> None:
    workload = generators.PRESETS["io-sets"].make(jobs=3, seed=1, horizon=50.0)
    formats.write(workload, tmp_path / "w.json")
    (tmp_path / "plain").touch()
    mode = (tmp_path / "plain").stat().st_mode
    assert stat.S_IMODE((tmp_path / "w.json").stat().st_mode) == stat.S_IMODE(mode)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("npz") / "w.npz"
    workload = generators.PRESETS["io-sets"].make(jobs=3, seed=1, horizon=50.0)
    formats.write(workload, file)
    return file.read_bytes()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 10**40)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["5 min", "12 GiB", "id", "p"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(GOOD["jobs"][3])), inner)
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if not isinstance(value, dict | list):
        return [path]
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    return [path, *(p for key, item in inside for p in places(item, (*path, key)))]


def only_input_errors(file: Path, **given: Any) -> None:
    """Any other exception fails the test."""
    try:
        formats.read(file, Site(bandwidth=1e9, nodes=8), **given)
    except InputError as error:
        named = file.name in str(error)
    else:
        named = True
    assert named


FUZZED = settings(examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])


@FUZZED
@given(data=st.data())
def test_mutated_json_is_a_workload_or_an_input_error(tmp_path: Path, data: st.DataObject) -> None:
    document = json.loads(json.dumps(GOOD))
    for _ in range(data.draw(st.integers(1, 3))):
        *path, last = data.draw(st.sampled_from(places(document)[1:]))
        parent = document
        for key in path:
            parent = parent[key]
        parent[last] = data.draw(JSON)
        if not isinstance(document, dict) or not places(document)[1:]:
            break
    file = tmp_path / "w.json"
    file.write_text(json.dumps(document))
    only_input_errors(file)


@FUZZED
@example(suffix=".csv", data=b"job,compute,io\na,1,\x00")
@example(suffix=".swf", data=b"1 " * 18)
@given(suffix=st.sampled_from([".json", ".npz", ".csv", ".swf"]), data=st.binary(max_size=200))
def test_arbitrary_bytes_are_an_input_error(tmp_path: Path, suffix: str, data: bytes) -> None:
    file = tmp_path / f"w{suffix}"
    file.write_bytes(data)
    only_input_errors(file, io_ratio=0.1, w_iter=10.0)


@FUZZED
@given(
    edits=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 10**6),
)
def test_damaged_files_are_a_workload_or_an_input_error(
    tmp_path: Path, archive: bytes, edits: list[tuple[int, int]], cut: int
) -> None:
    for name, whole in (("w.json", json.dumps(GOOD).encode()), ("w.npz", archive)):
        data = bytearray(whole)
        for at, value in edits:
            data[at % len(data)] = value
        file = tmp_path / name
        file.write_bytes(data if edits else data[: cut % len(data)])
        only_input_errors(file)
