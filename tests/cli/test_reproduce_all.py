"""`penstock reproduce all`, as a user meets it: the page, an interrupt, a study that fails."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from campaign import one_cell
from limits import COMPUTING
from report.report_pages import assert_stands_alone

from penstock import studies
from penstock.campaign import executors
from penstock.cli import main

RUN = [sys.executable, "-m", "penstock.cli", "reproduce", "all", "--quick"]
TWO = ["sharing-policies", "forwarding-policies"]
PATIENCE = COMPUTING


def test_all_are_run_together_and_those_that_measure_time_last() -> None:
    assert sorted(studies.IN_ORDER) == sorted(studies.STUDIES)
    work = [studies.load(name).campaign(size="full", seed=0) for name in studies.IN_ORDER]
    alone = [one.alone for one in work]
    assert alone == sorted(alone)


@pytest.mark.parametrize("name", studies.STUDIES)
def test_quick_is_less_than_fast_and_fast_less_than_full(name: str) -> None:
    quick, fast, full = (
        studies.load(name).campaign(size=size, seed=0) for size in ("quick", "fast", "full")
    )
    assert len(quick.cells) <= len(fast.cells) <= len(full.cells)
    assert (quick.size, fast.size, full.size) == ("quick", "fast", "full")
    if name not in {"detection", "write-models"}:  # these do less when rows are looked at
        assert quick.cells != fast.cells or str(quick.work) != str(fast.work)


def kept(out: Path) -> int:
    file = out / TWO[1] / "cells.jsonl"
    return file.read_bytes().count(b"\n") - 1 if file.exists() else 0


def interrupted(out: Path) -> subprocess.CompletedProcess[str]:
    process = subprocess.Popen(
        [*RUN, "--only", ",".join(TWO), "--out", str(out), "--jobs", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + PATIENCE
    while kept(out) < 1:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


@pytest.mark.slow
def test_an_interrupt_leaves_a_page_and_the_same_command_ends_it(tmp_path: Path) -> None:
    out = tmp_path / "all"
    stopped = interrupted(out)
    assert stopped.returncode == 130, stopped.stderr
    assert "[2/2] forwarding-policies" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    page = assert_stands_alone((out / "report.html").read_text(encoding="utf-8"))
    assert "forwarding-policies (interrupted" in page.text
    assert {section for section, _ in page.marks} == {"study-sharing-policies"}
    cells = (out / TWO[1] / "cells.jsonl").read_bytes()

    ended = subprocess.run(
        [*RUN, "--only", ",".join(TWO), "--out", str(out), "--json"],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    assert (out / TWO[1] / "cells.jsonl").read_bytes().startswith(cells)
    assert_outputs_agree(out, json.loads(ended.stdout))


def assert_outputs_agree(out: Path, answer: dict[str, Any]) -> None:
    """Page, tables and JSON agree, and each says that this is a look."""
    text = (out / "report.html").read_text(encoding="utf-8")
    page = assert_stands_alone(text)
    with (out / "claims.csv").open(encoding="utf-8") as file:
        claims = list(csv.DictReader(file))
    with (out / "summary.csv").open(encoding="utf-8") as file:
        summary = {
            row["by"]: (int(row["claims"]), int(row["hold"])) for row in csv.DictReader(file)
        }
    assert page.marks == [
        (f"study-{claim['study']}", claim["holds"] if claim["holds"] in ("yes", "no") else "open")
        for claim in claims
    ]
    for by, (number, hold) in summary.items():
        own = [
            claim
            for claim in claims
            if claim["counted"] == "yes"
            and (claim["by"] == by or (by == "these papers" and claim["by"] != "penstock"))
        ]
        assert (len(own), sum(claim["holds"] == "yes" for claim in own)) == (number, hold), by
    papers, ours = summary["these papers"], summary["penstock"]
    assert f"{papers[1]} of {papers[0]}of these papers' claims hold" in page.text
    assert "ran evaluations of one paper again (forwarding), not all" in page.text
    assert "neither judged nor counted here: 3 of sharing-policies (io-sets judges)" in page.text
    assert f"penstock reproduce all --quick --only {','.join(TWO)} --seed 0" in page.text
    others = [name for name in studies.IN_ORDER if name not in TWO]
    assert f"Not asked for: {', '.join(others)}." in page.text
    assert answer["not_asked_for"] == others
    assert f"{ours[1]} of {ours[0]}of our own claims hold" in page.text
    differ = [claim for claim in claims if claim["counted"] == "yes" and claim["holds"] == "no"]
    assert differ
    assert all(page.text.count(claim["why"]) >= 2 for claim in differ), "in its table and on top"
    assert [study["state"] for study in answer["studies"]] == ["done", "done"]
    assert len(answer["claims"]) == len(claims)
    assert [claim["verdict"] for claim in answer["claims"]] == [claim["holds"] for claim in claims]
    assert (out / "claims.md").read_text(encoding="utf-8").count("\n") == len(claims) + 2
    for path in (out / "report.html", *(out / name / "report.html" for name in TWO)):
        page = assert_stands_alone(path.read_text(encoding="utf-8"))
        assert "quick: too few workloads to judge claims by" in page.text
        assert page.figures
        assert all("quick" in figure.alt for figure in page.figures)


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Three studies of one cell; the second fails as long as the file that is returned exists."""
    names = {name: f"campaign.one_cell:{name.upper()}" for name in ("whole", "broken", "last")}
    monkeypatch.setattr(studies, "STUDIES", names)
    monkeypatch.setattr(studies, "IN_ORDER", list(names))
    fails = tmp_path / "fails"
    fails.touch()
    monkeypatch.setenv(one_cell.FAILS, str(fails))
    return fails


def test_a_study_that_fails_is_said_so_and_the_others_go_on(
    three: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "all"
    assert main(["reproduce", "all", "--out", str(out)]) == 1
    answer = capsys.readouterr()
    assert "broken failed: ZeroDivisionError: by <nothing>; the others go on" in answer.err
    assert "1 of 3 studies failed: broken" in answer.err
    assert "Traceback" not in answer.err
    assert "ZeroDivisionError" in (out / "broken" / "error.txt").read_text()
    page = assert_stands_alone((out / "report.html").read_text(encoding="utf-8"))
    assert "broken (failed: ZeroDivisionError: by <nothing>)" in page.text
    assert "2 of 2of these papers' claims hold" in page.text
    assert (out / "summary.csv").read_text().splitlines()[-1] == "these papers,2,2,0,0,0,0"
    before = (out / "last" / "cells.jsonl").read_bytes()

    three.unlink()
    assert main(["reproduce", "all", "--out", str(out)]) == 0
    page = assert_stands_alone((out / "report.html").read_text(encoding="utf-8"))
    assert "3 of 3of the papers' claims hold" in page.text
    assert (out / "summary.csv").read_text().splitlines()[-1] == "all papers,3,3,0,0,0,0"
    assert "failed" not in page.text
    assert not (out / "broken" / "error.txt").exists()
    assert (out / "last" / "cells.jsonl").read_bytes() == before, "what was there is kept"


def test_results_of_another_run_are_refused_before_any_work(
    three: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "all"
    assert main(["reproduce", "all", "--out", str(out), "--only", "last"]) == 0
    capsys.readouterr()
    assert main(["reproduce", "all", "--out", str(out), "--seed", "5"]) == 2
    assert "it has seed 0, this run seed 5" in capsys.readouterr().err
    assert not (out / "whole").exists()


def page_of(out: Path) -> str:
    return assert_stands_alone((out / "report.html").read_text(encoding="utf-8")).text


def test_only_takes_in_what_else_is_finished_there(
    three: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """To repeat one study does not take the others off the page of all."""
    three.unlink()
    out = tmp_path / "all"
    only = ["reproduce", "all", "--out", str(out), "--only"]
    assert main([*only, "last"]) == 0
    assert "Not asked for: whole, broken." in capsys.readouterr().out
    page = page_of(out)
    assert "Not asked for: whole, broken." in page
    assert "penstock reproduce all --only last --seed 0 --out DIR" in page
    assert main([*only, "whole"]) == 0
    assert "last: finished there before, and taken in" in capsys.readouterr().err
    page = page_of(out)
    assert "2 of 2of these papers' claims hold" in page
    assert "Not asked for: broken." in page
    assert "penstock reproduce all --only whole,last --seed 0 --out DIR" in page
    assert main([*only, "broken", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["taken_in"], answer["not_asked_for"]) == (["whole", "last"], [])
    page = page_of(out)
    assert "3 of 3of the papers' claims hold" in page
    assert "penstock reproduce all --seed 0 --out DIR" in page


def test_only_says_what_it_cannot_take_in(
    three: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    three.unlink()
    out = tmp_path / "all"
    assert main(["reproduce", "all", "--out", str(out), "--only", "whole,last"]) == 0
    cells = out / "last" / "cells.jsonl"
    cells.write_bytes(cells.read_bytes().splitlines(keepends=True)[0])
    another = out / "whole" / "cells.jsonl"
    another.write_bytes(another.read_bytes().replace(b'"seed":0', b'"seed":5'))
    kept = another.read_bytes()
    capsys.readouterr()
    assert main(["reproduce", "all", "--out", str(out), "--only", "broken"]) == 0
    answer = capsys.readouterr().err
    assert "it has seed 5, this run seed 0" in answer
    assert f"last is left out: {cells} has 0 of 1 cells" in answer
    page = page_of(out)
    assert "Not asked for: whole (left out: " in page
    assert "1 of 1of these papers' claims hold" in page
    assert another.read_bytes() == kept


def test_a_directory_of_one_study_is_refused_for_all_and_the_other_way_round(
    three: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    three.unlink()
    one, every = tmp_path / "one", tmp_path / "all"
    assert main(["reproduce", "whole", "--out", str(one)]) == 0
    assert main(["reproduce", "all", "--only", "whole", "--out", str(every)]) == 0
    assert not (every / "figures").exists()
    pages = [(out / "report.html").read_bytes() for out in (one, every)]
    capsys.readouterr()
    assert main(["reproduce", "all", "--out", str(one)]) == 2
    assert f"{one} has results of one study; choose another --out" in capsys.readouterr().err
    assert main(["reproduce", "whole", "--out", str(every)]) == 2
    assert f"{every} has the page of all studies; choose another" in capsys.readouterr().err
    assert [(out / "report.html").read_bytes() for out in (one, every)] == pages


def test_a_place_that_does_not_answer_is_said_in_a_line_and_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Studies that run here do; the last that needs the place does not promise others."""
    monkeypatch.setattr(executors, "LIMITS", executors.Limits(connect=0.5))
    names = {name: f"campaign.one_cell:{name.upper()}" for name in ("remote", "far", "last")}
    monkeypatch.setattr(studies, "STUDIES", names)
    monkeypatch.setattr(studies, "IN_ORDER", list(names))
    out, where = tmp_path / "all", "tcp://127.0.0.1:9"
    assert main(["reproduce", "all", "--on", where, "--out", str(out)]) == 1
    answer = capsys.readouterr().err
    first, second = (
        line for line in answer.splitlines() if " failed: " in line and "of 3" not in line
    )
    assert first.startswith("remote failed: ")
    assert first.endswith(f"; the next asks {where} again")
    assert second.startswith("far failed: ")
    assert second.endswith("; the others run here")
    assert "did not answer within 0.5 s" in first
    assert "did not answer within 0.5 s" in second
    assert "2 of 3 studies failed: remote, far" in answer
    assert "Error" not in answer.replace("Error: 2 of 3", "")
    assert not list(out.rglob("error.txt"))
    assert "1 of 1of these papers' claims hold" in page_of(out)
    assert main(["reproduce", "all", "--on", where, "--only", "far", "--out", str(out)]) == 1
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "far failed: " in line)
    assert "again" not in line
    assert "the others" not in line
