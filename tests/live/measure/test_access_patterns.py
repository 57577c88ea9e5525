"""FORGE's pattern files, and where each rank's requests lie."""

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InputError
from penstock.live.measure import access_patterns
from penstock.live.measure.access_patterns import Pattern

ROOT = Path(__file__).parents[3]
FORGE = {
    "forwarders": "2",
    "handlers": "16",
    "dispatchers": "8",
    "phases": [
        {
            "repetitions": "3",
            "patterns": [
                {"operation": "open", "path": "/mnt/pfs/test", "number_of_files": "shared"},
                {
                    "path": "/mnt/pfs/test",
                    "operation": "write",
                    "number_of_files": "shared",
                    "spatiality": "strided",
                    "total_size": "4294967296",
                    "request_size": "32768",
                    "validation": "1",
                    "direct_io": "0",
                    "stone_wall": "30",
                },
                {"operation": "close", "path": "/mnt/pfs/test", "number_of_files": "shared"},
            ],
        }
    ],
}


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read(content: Any) -> Any:
        file = tmp_path / "patterns.json"
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return access_patterns.read(file)

    return read


def test_forge_files_are_read_as_they_are(read: Any) -> None:
    patterns, ignored = read(FORGE)
    assert (patterns.forwarders, patterns.dispatchers, ignored) == (2, 8, ["handlers"])
    (phase,) = patterns.phases
    assert (phase.name, phase.repetitions, phase.processes) == ("patterns", 3, None)
    assert phase.patterns[1] == Pattern(
        path="/mnt/pfs/test",
        operation="write",
        number_of_files="shared",
        spatiality="strided",
        total_size=1 << 32,
        request_size=1 << 15,
        validation=True,
        stone_wall=30.0,
    )


def test_the_first_format_is_one_pattern_written_then_read(read: Any) -> None:
    flat = {"forwarders": "1", "listeners": "16", "path": "/mnt/pfs/test", "total_size": "1024"}
    patterns, ignored = read(flat | {"number_of_files": "individual", "request_size": "256"})
    (phase,) = patterns.phases
    assert [pattern.operation for pattern in phase.patterns] == ["write", "read"]
    assert {pattern.total_size for pattern in phase.patterns} == {1024}
    assert (patterns.forwarders, ignored) == (1, ["listeners"])


def test_the_documented_example_and_the_shipped_one_are_read(read: Any) -> None:
    page = (ROOT / "docs/formats/pattern-files.md").read_text()
    patterns, ignored = read(page.split("```json\n")[1].split("```")[0])
    assert (patterns.phases[0].name, ignored) == ("checkpoint", [])
    patterns, ignored = read((ROOT / "examples" / "patterns.json").read_text())
    assert (len(patterns.phases), ignored) == (2, [])


def test_keys_of_other_versions_are_listed_and_ignored(read: Any) -> None:
    assert read(FORGE | {"agios_config": "/tmp"})[1] == ["handlers", "agios_config"]


def phase(**changes: Any) -> Any:
    write = {"operation": "write", "total_size": 1024, "request_size": 256}
    return {"phases": [{"patterns": [write | changes]}]}


def test_a_phase_with_a_key_of_our_own_begins_a_job(read: Any) -> None:
    """FORGE repeats a phase before the next one begins."""
    (write,) = phase()["phases"]
    (closing,) = phase(operation="close")["phases"]
    (reading,) = phase(operation="read")["phases"]
    patterns, _ = read(
        {
            "phases": [
                write | {"name": "first", "processes": 2, "repetitions": 2},
                closing,
                reading | {"repetitions": 3},
                write | {"processes": 8, "repetitions": 5},
            ]
        }
    )
    first, second = patterns.phases
    assert (first.name, first.processes, first.repetitions) == ("first", 2, 1)
    operations = [pattern.operation for pattern in first.patterns]
    assert operations == ["write", "write", "close", "read", "read", "read"]
    assert (second.name, second.processes, second.repetitions) == ("phase-4", 8, 5)


def test_jobs_of_earlier_versions_are_what_they_were(read: Any) -> None:
    """Each phase had a name, and was a job of its own."""
    named = [phase()["phases"][0] | {"name": name} for name in ("a", "b")]
    patterns, _ = read({"phases": named})
    assert [(job.name, len(job.patterns)) for job in patterns.phases] == [("a", 1), ("b", 1)]


def test_a_file_whose_name_cannot_be_a_jobs_gives_what_it_can(tmp_path: Path) -> None:
    for name, expected in (("_a b(1).json", "a-b-1-"), ("...json", "patterns")):
        (tmp_path / name).write_text(json.dumps(phase()))
        assert access_patterns.read(tmp_path / name)[0].phases[0].name == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ('{"phases":\n\n [}', "line 3"),
        ("[]", "JSON object"),
        ("{}", "neither phases"),
        ({"phases": []}, "phases"),
        ({"phases": [{"patterns": [{"operation": "open"}]}]}, "neither writes nor reads"),
        (phase(request_sise=1), "did you mean"),
        (phase(operation="append"), r"phases\[0\]\.patterns\[0\]\.operation: .*'append'"),
        (phase(request_size="large"), r"phases\[0\]\.patterns\[0\]\.request_size: "),
        (phase(request_size=0), r"phases\[0\]\.patterns\[0\]\.request_size: "),
        (
            phase(request_size=2048),
            r"patterns\[0\]\.total_size: 1024 is less than one request_size",
        ),
        (phase(spatiality="strided"), r"patterns\[0\]\.spatiality: .* cannot be strided"),
        (phase(direct_io=1, request_size=100), r"\.request_size: .* a multiple of 512 bytes"),
        ({"phases": [{"patterns": [{"operation": "read"}]}]}, r"patterns\[0\] has no total_size"),
        (
            {
                "phases": [
                    *phase()["phases"],
                    *phase(operation="read", validation=1, request_size=128)["phases"],
                ]
            },
            "was written with a request_size of 256",
        ),
        (
            {"phases": [phase()["phases"][0] | {"repetitions": 1 << 16}, *phase()["phases"]]},
            "65537 operations",
        ),
        ({"phases": 2 * [phase()["phases"][0] | {"name": "a"}]}, "two jobs have one name"),
        ({"phases": [phase()["phases"][0] | {"name": "a/b"}]}, "name"),
    ],
)
def test_an_invalid_file_is_refused_with_its_error(read: Any, content: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        read(content)
    assert "patterns.json" in str(error.value)


@pytest.mark.parametrize("spatiality", ["contiguous", "strided"])
def test_ranks_of_a_shared_file_cover_it_exactly_once(spatiality: Any) -> None:
    pattern = Pattern(
        operation="write",
        number_of_files="shared",
        spatiality=spatiality,
        total_size=24 * 100,
        request_size=100,
    )
    offsets = {
        rank: [pattern.offset(k, rank, 4) for k in range(pattern.requests(4))] for rank in range(4)
    }
    assert sorted(chain(*offsets.values())) == [100 * k for k in range(24)]
    first = {"contiguous": [0, 100, 200], "strided": [0, 400, 800]}[spatiality]
    assert offsets[0][:3] == first


def test_individual_files_begin_at_offset_zero() -> None:
    pattern = Pattern(operation="write", path="/a/b", total_size=800, request_size=100)
    assert [pattern.offset(k, 3, 4) for k in range(2)] == [0, 100]
    assert pattern.file("/root", 3) == "/root/b.00003"
