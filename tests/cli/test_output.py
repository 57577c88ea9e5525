"""Progress in a log: nothing of what is soon over, a line at each tenth of what is not."""

import pytest

from penstock.cli.common import output


def test_short_work_leaves_no_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with output.progress("working", 3) as shown:
        shown.advance(3)
    assert capsys.readouterr().err == ""


def test_a_line_at_each_tenth(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "QUIET_SECONDS", -1.0)
    with output.progress("working", 100) as shown:
        for _ in range(100):
            shown.advance()
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"working: {tenth}0/100" for tenth in range(1, 11)]


def test_a_total_that_is_known_later(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "QUIET_SECONDS", -1.0)
    with output.progress("reading", 0) as shown:
        shown.reach(0, 50)
        shown.reach(20, 50)
    assert capsys.readouterr().err == "reading: 20/50\n"
