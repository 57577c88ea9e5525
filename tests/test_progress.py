"""Progress in a log: nothing of work that ends soon, one line per tenth of other work."""

from itertools import count

import pytest

from penstock.progress import progress


def test_short_work_leaves_no_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("working", 3) as bar:
        bar.advance(3)
    assert capsys.readouterr().err == ""


def test_a_line_at_each_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    """Each step takes a second: what is left takes as many seconds as steps."""
    with progress("working", 100, clock=count().__next__) as bar:
        for _ in range(100):
            bar.advance()
    lines = capsys.readouterr().err.splitlines()
    left = [f"working: {k}/100, about {100 - k} s left" for k in range(10, 91, 10)]
    assert lines == [*left, "working: 100/100"]


def test_a_total_that_is_known_later(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("reading", 0, clock=count(step=10).__next__) as bar:
        bar.reach(0, 50)
        bar.reach(20, 50)
        bar.reach(40, 5000)
        bar.reach(4000, 5000)
    first, last = capsys.readouterr().err.splitlines()
    assert first == "reading: 20/50, about 30 s left"
    assert last == "reading: 4000/5000, about 10 s left"
