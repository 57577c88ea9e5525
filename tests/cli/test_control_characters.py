"""No name from a file, a record or another user's job makes a terminal do anything."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.common.output import emit_table
from penstock.printable import is_printable, printable

EVIL = "a\x1b[31m\n\u202eb"
EXAMPLE = Path(__file__).parents[2] / "examples" / "record.jsonl"


@pytest.mark.parametrize("text", ["job-1", "Ünïcode 作业", "a\u00a0b"])
def test_what_a_terminal_only_shows_stays(text: str) -> None:
    assert is_printable(text)
    assert printable(text) == text


@pytest.mark.parametrize("character", "\x1b\n\r\x07\x7f\x9b\u202e\u2028")
def test_what_a_terminal_obeys_is_replaced(character: str) -> None:
    assert not is_printable(f"a{character}b")
    assert printable(f"a{character}b") == "a?b"
    assert printable(f"a{character}b", keep=character) == f"a{character}b"


def test_cells_of_tables_have_none(capsys: pytest.CaptureFixture[str]) -> None:
    emit_table(("job",), [("evil\x1b]0;title\x07",)])
    assert "evil?]0;title?" in capsys.readouterr().out


@pytest.mark.parametrize(
    "verb",
    [
        ("simulate", "jobs.json"),
        ("compare", "jobs.json"),
        ("pack", "jobs.json", "--set", "site.nodes=4"),
        ("allocate", "jobs.json", "--set", "site.resources=4"),
    ],
)
def test_jobs_with_such_names_are_refused(
    penstock: Any, directory: Path, verb: tuple[str, ...]
) -> None:
    (directory / "jobs.json").write_text(json.dumps({"jobs": [{"id": EVIL, "phases": [[1, 1]]}]}))
    answer = penstock(*verb)
    assert answer.status == 2
    assert r"'a\x1b[31m\n\u202eb' has control characters" in answer.err
    assert is_printable((answer.out + answer.err).rstrip("\n"))


@pytest.mark.parametrize("verb", [("what-if",), ("what-if", "--json"), ("simulate",)])
def test_so_are_records_with_such_jobs(
    penstock: Any, directory: Path, verb: tuple[str, ...]
) -> None:
    record = EXAMPLE.read_text().replace('"solver.2"', json.dumps(EVIL))
    (directory / "record.jsonl").write_text(record)
    answer = penstock(verb[0], "record.jsonl", *verb[1:])
    assert (answer.status, answer.out) == (2, "")
    assert "has control characters" in answer.err
    assert is_printable(answer.err.rstrip("\n"))


@pytest.mark.parametrize("name", ["run", "mode"])
def test_so_are_records_with_such_headers(penstock: Any, directory: Path, name: str) -> None:
    head, _, rest = EXAMPLE.read_text().partition("\n")
    changed = json.dumps(json.loads(head) | {name: EVIL})
    (directory / "record.jsonl").write_text(f"{changed}\n{rest}")
    answer = penstock("what-if", "record.jsonl", "--policies", "set-10")
    assert answer.status == 2
    assert "record.jsonl, line 1 has control characters in a name" in answer.err


def test_errors_name_files_without_them(penstock: Any) -> None:
    answer = penstock("simulate", "no\x1b[31mfile.json")
    assert answer.status == 2
    assert "no?[31mfile.json" in answer.err


@pytest.mark.parametrize("verb", [("simulate",), ("compare", "--policies", "set-10,fair-share")])
def test_so_do_titles_of_tables(penstock: Any, jobs: str, verb: tuple[str, ...]) -> None:
    name = "\x1b[31mx[red].json"
    Path(jobs).rename(name)
    answer = penstock(verb[0], name, *verb[1:])
    assert answer.status == 0
    assert "?[31mx[red].json: " in answer.out
    assert "\x1b[31m" not in answer.out


def test_what_if_names_records_without_them(penstock: Any, directory: Path) -> None:
    name = directory / "a\x1b[31m.jsonl"
    name.write_bytes(EXAMPLE.read_bytes())
    answer = penstock("what-if", name.name, "--policies", "fair-share")
    assert answer.status == 0
    assert "a?[31m.jsonl: " in answer.out
    assert "\x1b" not in answer.out
