"""The manual pages: one a verb, made of what verbs say, without a fault for who reads roff."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from limits import COMPUTING

from penstock.cli import VERBS
from penstock.cli.common import manual
from penstock.cli.verbs.man import man, man_page


@pytest.fixture(scope="module")
def man1(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("man") / "man1"
    result = CliRunner().invoke(man, ["--out", str(out)], env={"SOURCE_DATE_EPOCH": "86400"})
    assert result.exit_code == 0, result.output
    return out


def lint(*command: str) -> str:
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "100"}
    ended = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=COMPUTING, env=environment
    )
    return ended.stdout + ended.stderr


def test_every_verb_has_a_page(man1: Path) -> None:
    there = {file.name for file in man1.iterdir()}
    assert there >= {"penstock.1", *(f"penstock-{verb}.1" for verb in VERBS)}
    assert "penstock-patterns-measure.1" in there


def test_mandoc_and_groff_find_nothing_to_say(man1: Path) -> None:
    files = sorted(map(str, man1.iterdir()))
    assert lint("mandoc", "-Tlint", "-Wstyle", *files) == ""
    assert lint("groff", "-man", "-ww", "-z", "-Tutf8", *files) == ""


def test_man_shows_what_help_says(man1: Path) -> None:
    shown = " ".join(lint("man", "-l", str(man1 / "penstock-simulate.1")).split())
    page = manual.page("simulate")
    assert page is not None
    for example in page.examples:
        assert " ".join(example.command.split()) in shown
    for names, _ in page.options:
        assert names in shown
    assert "1970-01-02" in shown


def test_what_begins_like_a_request_is_text() -> None:
    page = manual.Page(
        path=("penstock", "x"),
        summary="It's this.",
        synopsis="penstock x",
        paragraphs=(manual.Paragraph(text=".swf 'a' \\b a-b"),),
        examples=(),
        options=(),
        verbs=(),
    )
    from datetime import date  # noqa: PLC0415

    lines = man_page(page, date(2026, 1, 2)).splitlines()
    assert r"\&.swf \(aqa\(aq \eb a\-b" in lines


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["simulat"], 2, "did you mean 'simulate'?"),
        (["simulate", "--out", "x"], 2, "leave out VERB"),
        (["patterns", "measure"], 0, "PENSTOCK-PATTERNS-MEASURE"),
        ([], 0, "PENSTOCK"),
    ],
)
def test_the_verb(
    words: list[str], status: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from penstock.cli import main  # noqa: PLC0415

    assert main(["man", *words]) == status
    answer = capsys.readouterr()
    assert says in answer.out + answer.err


def test_json_is_the_page_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    from penstock.cli import main  # noqa: PLC0415

    assert main(["man", "generate", "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert page["path"] == ["penstock", "generate"]
    assert {"command": "penstock generate --list", "note": ""} in page["examples"]
