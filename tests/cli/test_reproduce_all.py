"""`penstock reproduce all`, as a user meets it: the page, an interrupt, a study that fails."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import one_cell
import pytest
from pages import assert_stands_alone

from penstock import studies
from penstock.cli import main

RUN = [sys.executable, "-m", "penstock.cli", "reproduce", "all", "--quick"]
TWO = ["sharing-policies", "forwarding-policies"]
PATIENCE = 200.0


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
    assert_says_what_was_found(out, json.loads(ended.stdout))


def assert_says_what_was_found(out: Path, told: dict[str, list[dict[str, object]]]) -> None:
    """Page, tables and JSON agree, and each says that this is a look."""
    text = (out / "report.html").read_text(encoding="utf-8")
    page = assert_stands_alone(text)
    with (out / "claims.csv").open(encoding="utf-8") as file:
        claims = list(csv.DictReader(file))
    with (out / "summary.csv").open(encoding="utf-8") as file:
        summary = {
            row["by"]: (int(row["claims"]), int(row["hold"])) for row in csv.DictReader(file)
        }
    assert page.marks == [(f"study-{claim['study']}", claim["holds"]) for claim in claims]
    for by, (number, hold) in summary.items():
        own = [
            claim
            for claim in claims
            if claim["counted"] == "yes"
            and (claim["by"] == by or (by == "all papers" and claim["by"] != "penstock"))
        ]
        assert (len(own), sum(claim["holds"] == "yes" for claim in own)) == (number, hold), by
    papers, ours = summary["all papers"], summary["penstock"]
    assert f"{papers[1]} of {papers[0]}of the papers' claims hold" in page.text
    assert f"{ours[1]} of {ours[0]}of our own claims hold" in page.text
    differ = [claim for claim in claims if claim["counted"] == "yes" and claim["holds"] == "no"]
    assert differ
    assert all(page.text.count(claim["why"]) >= 2 for claim in differ), "in its table and on top"
    assert [study["state"] for study in told["studies"]] == ["done", "done"]
    assert len(told["claims"]) == len(claims)
    assert sum(claim["holds"] is True for claim in told["claims"]) == sum(
        claim["holds"] == "yes" for claim in claims
    )
    assert (out / "claims.md").read_text(encoding="utf-8").count("\n") == len(claims) + 2
    for file in (out / "report.html", *(out / name / "report.html" for name in TWO)):
        page = assert_stands_alone(file.read_text(encoding="utf-8"))
        assert "quick: too few workloads to judge claims by" in page.text
        assert page.figures
        assert all("quick" in figure.alt for figure in page.figures)


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Three studies of one cell; the second fails as long as the file that is returned exists."""
    names = {name: f"one_cell:{name.upper()}" for name in ("whole", "broken", "last")}
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
    told = capsys.readouterr()
    assert "broken failed: ZeroDivisionError: by <nothing>; the others go on" in told.err
    assert "1 of 3 studies failed: broken" in told.err
    assert "Traceback" not in told.err
    assert "ZeroDivisionError" in (out / "broken" / "error.txt").read_text()
    page = assert_stands_alone((out / "report.html").read_text(encoding="utf-8"))
    assert "broken (failed: ZeroDivisionError: by <nothing>)" in page.text
    assert "2 of 2of the papers' claims hold" in page.text
    before = (out / "last" / "cells.jsonl").read_bytes()

    three.unlink()
    assert main(["reproduce", "all", "--out", str(out)]) == 0
    page = assert_stands_alone((out / "report.html").read_text(encoding="utf-8"))
    assert "3 of 3of the papers' claims hold" in page.text
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
