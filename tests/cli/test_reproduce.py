"""`penstock reproduce`, as a user meets it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.studies import STUDIES

RUN = [sys.executable, "-m", "penstock.cli", "reproduce"]


def error_of(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert main(["reproduce", *args]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_wrong_input_is_refused_before_any_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "did you mean 'io-sets'?" in error_of(capsys, "io-set", "--out", str(tmp_path / "x"))
    assert not (tmp_path / "x").exists()
    assert f"name a study: {', '.join(STUDIES)}" in error_of(capsys)
    assert "--out DIR" in error_of(capsys, "sharing-policies")
    out = ("--out", str(tmp_path / "x"))
    assert "choose one" in error_of(capsys, "sharing-policies", "--quick", "--full", *out)
    assert "--only is for 'all'" in error_of(capsys, "sharing-policies", "--only", "packs", *out)
    assert "did you mean 'packs'?" in error_of(capsys, "all", "--only", "io-sets,pack", *out)
    assert "--out DIR" in error_of(capsys, "all")
    file = tmp_path / "file"
    file.write_text("mine")
    assert "cannot be written to" in error_of(capsys, "sharing-policies", "--out", str(file))
    assert file.read_text() == "mine"
    error_of(capsys, "sharing-policies", "--out", str(tmp_path / "x"), "--jobs", "0")
    error_of(capsys, "sharing-policies", "--out", str(tmp_path / "x"), "--seed", "-1")


def test_a_directory_that_cannot_be_made_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Not even root can make a directory in /proc."""
    assert "cannot be written to" in error_of(capsys, "sharing-policies", "--out", "/proc/study")


def test_the_list_names_every_study(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--list"]) == 0
    people = capsys.readouterr().out
    assert main(["reproduce", "--list", "--json"]) == 0
    studies = [entry["study"] for entry in json.loads(capsys.readouterr().out)]
    assert studies == list(STUDIES)
    assert {"demo", "forwarding-policies", "io-resources", "io-sets", "packs"} <= set(studies)
    assert all(name in people for name in studies)


def interrupted(out: Path) -> subprocess.CompletedProcess[str]:
    process = subprocess.Popen(
        [*RUN, "sharing-policies", "--out", str(out), "--jobs", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not (out / "cells.jsonl").exists() or (out / "cells.jsonl").read_bytes().count(b"\n") < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def test_an_interrupted_study_goes_on_where_it_stopped(tmp_path: Path) -> None:
    out = tmp_path / "study"
    stopped = interrupted(out)
    assert stopped.returncode == 130, stopped.stderr
    assert "the same command goes on from there" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert not (out / "results.csv").exists()
    kept = (out / "cells.jsonl").read_bytes()
    assert kept.count(b"\n") < 10

    resumed = subprocess.run(
        [*RUN, "sharing-policies", "--out", str(out), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (out / "cells.jsonl").read_bytes().startswith(kept)
    claims = json.loads(resumed.stdout)
    columns = {"claim", "by", "paper", "ours", "holds", "why", "repeats"}
    columns |= {"readings", "apart", "by_clock", "verdict"}
    assert [set(claim) for claim in claims] == [columns] * 3
    assert all(claim["holds"] is True for claim in claims)

    whole = tmp_path / "whole"
    shown = subprocess.run(
        [*RUN, "sharing-policies", "--out", str(whole), "--jobs", "2"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "set-10" in shown.stdout
    assert str(whole / "report.html") in shown.stdout
    for name in ("results.csv", "claims.csv", "claims.md", "figures/example.svg"):
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name
    assert (whole / "figures" / "policies.png").stat().st_size > 10_000
    assert "simulated" in (whole / "report.html").read_text(encoding="utf-8")


def test_a_quick_run_says_that_it_is_a_preview(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["reproduce", "sharing-policies", "--quick", "--out", str(tmp_path)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"report: {tmp_path / 'report.html'} (a preview; quick: too few")
    head, *rows = (tmp_path / "claims.csv").read_text(encoding="utf-8").splitlines()
    assert head.endswith(",counted")
    assert rows, "io-sets judges these claims"
    assert all(row.endswith(",no") for row in rows)


def test_results_of_another_seed_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    header = b'{"study":"sharing-policies","version":1,"size":"fast","seed":5,"penstock":"0.1.0"}\n'
    (tmp_path / "cells.jsonl").write_bytes(header)
    assert "seed 5" in error_of(capsys, "sharing-policies", "--out", str(tmp_path))
    assert (tmp_path / "cells.jsonl").read_bytes() == header
