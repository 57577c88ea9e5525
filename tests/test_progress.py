"""Progress in a log: nothing of work that ends soon, one line per tenth of other work."""

import pytest

from penstock.progress import progress


def test_short_work_leaves_no_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("working", 3) as bar:
        bar.advance(3)
    assert capsys.readouterr().err == ""


def test_a_line_at_each_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("working", 100, quiet=-1.0) as bar:
        for _ in range(100):
            bar.advance()
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"working: {tenth}0/100" for tenth in range(1, 11)]


def test_a_total_that_is_known_later(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("reading", 0, quiet=-1.0) as bar:
        bar.reach(0, 50)
        bar.reach(20, 50)
    assert capsys.readouterr().err == "reading: 20/50\n"
