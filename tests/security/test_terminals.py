"""Nothing that a job, a file or a log names makes a terminal do anything."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli.standing_jobs import job, node, status

from penstock import cli
from penstock.live.batch.hooks import adopt_message
from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.file_system_record import FileSystemRecord
from penstock.printable import is_printable

EVIL = "a\x1b]0;title\x07\x1b[31m\x9b2J\r\n\u202eb"
CLI = Path(cli.__file__).parent

pytestmark = pytest.mark.security


def hostile_job(comment: str = EVIL) -> messages.Status:
    """A job whose every text is hostile, adopted from Slurm with a hostile comment."""
    environment = {
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_UID": "1000",
        "SLURM_JOB_USER": EVIL,
        "SLURM_JOB_PARTITION": EVIL,
        "SLURM_JOB_COMMENT": f"penstock: application={comment},volume={EVIL}",
    }
    adopted = adopt_message(environment)
    record = job(
        f"{EVIL}.1",
        name=EVIL,
        user=adopted.user,
        executable=adopted.executable + EVIL,
        command=["./solver", EVIL],
        doing="waiting",
        since_seconds=1.0,
        at_most_seconds=2.0,
        behind=[f"{EVIL}.2"],
        file_systems=[EVIL],
        waits_on=[EVIL],
        waits=1,
        zero_bytes_reason=None,
        group=EVIL,
    )
    silent = node(0, state="not answering", silent_seconds=3.0, why=EVIL, scheduler=EVIL)
    places = [
        FileSystemRecord(number=k, name=name, roots=[EVIL]) for k, name in enumerate([EVIL, "b"])
    ]
    return status(
        record,
        io_nodes=[silent],
        roots=[EVIL],
        policy=EVIL,
        emulated=EVIL,
        file_systems=places,
        modes={EVIL: "observe"},
        policy_failures=1,
    )


@pytest.mark.parametrize(
    "verb",
    [
        ["status"],
        ["explain", f"{EVIL}.1"],
        ["top", "--once", "--interval", "0.1 s"],
        ["status", "--json"],
        ["explain", f"{EVIL}.1", "--json"],
        ["top", "--once", "--interval", "0.1 s", "--json"],
    ],
    ids=lambda verb: " ".join(verb).replace(EVIL, "EVIL"),
)
def test_what_jobs_name_only_shows(
    verb: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = hostile_job()
    monkeypatch.setattr(launcher, "ask", lambda *_: site)
    assert cli.main(verb) == 0
    out, err = capsys.readouterr()
    assert out
    assert "title" in out  # it is shown
    for line in (out + err).split("\n"):
        assert is_printable(line), line
    if "--json" in verb:  # and programs get what it is
        assert EVIL in texts(json.loads(out))


def texts(value: object) -> str:
    """Return all strings in a value of JSON, one after the other."""
    if isinstance(value, dict):
        return " ".join(map(texts, [*value, *value.values()]))
    return " ".join(map(texts, value)) if isinstance(value, list) else str(value)


def test_what_logs_name_forges_no_line() -> None:
    program = (
        "import logging\nfrom penstock.progress import log_to_stderr, message\nlog_to_stderr()\n"
        f"evil = {EVIL!r}\nlogging.info('job %s', evil)\nmessage(evil)\n"
        "try:\n    raise ValueError(evil)\nexcept ValueError:\n    logging.exception(evil)\n"
    )
    command = [sys.executable, "-c", program]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert len([line for line in text.splitlines() if "job a" in line]) == 1
    assert all(map(is_printable, text.split("\n"))), text


def test_verbs_print_in_no_other_way() -> None:
    """One mechanism: `penstock.cli.common.terminal`, and tables of `output`."""
    for file in CLI.rglob("*.py"):
        if file.name != "terminal.py":
            text = file.read_text()
            assert "click.echo" not in text, file
            assert "sys.stdout.write" not in text, file


def test_logs_are_set_up_in_no_other_way() -> None:
    for file in CLI.parent.rglob("*.py"):
        if file.name != "progress.py":
            assert "logging.basicConfig" not in file.read_text(), file
