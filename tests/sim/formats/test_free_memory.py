"""A limit of the machine or of the batch job counts, whichever is smaller."""

from pathlib import Path

import pytest

from penstock.sim.formats import free_memory


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(free_memory, "PROC", tmp_path / "proc")
    monkeypatch.setattr(free_memory, "CGROUPS", tmp_path / "cgroup")
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:  8 kB\n")
    return tmp_path


def limit(directory: Path, **files: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / f"memory.{name}").write_text(text)


def test_the_machine_alone(machine: Path) -> None:
    assert free_memory.available() == 8192


def test_nothing_known(machine: Path) -> None:
    (machine / "proc" / "meminfo").unlink()
    assert free_memory.available() is None


def test_a_job_limit_above_its_step_counts_and_cached_files_do_not(machine: Path) -> None:
    (machine / "proc" / "self" / "cgroup").write_text("0::/job/step\n")
    limit(machine / "cgroup" / "job" / "step", max="max", current="1", stat="")
    limit(
        machine / "cgroup" / "job", max="5000", current="3000", stat="anon 1\ninactive_file 500\n"
    )
    assert free_memory.available() == 2500


def test_version_one(machine: Path) -> None:
    (machine / "proc" / "self" / "cgroup").write_text("4:memory:/job\n2:cpu:/job\n")
    limit(
        machine / "cgroup" / "memory" / "job",
        limit_in_bytes="1000",
        usage_in_bytes="1500",
        stat="inactive_file 100\n",
    )
    assert free_memory.available() == 0
