"""What a job's comment says about its application and its I/O, and what it cannot break."""

import pytest
from slurm.test_environment import PROLOG

from penstock.errors import InputError
from penstock.learn.applications import LONGEST_NAME
from penstock.live.agent.node_agent import MAX_REQUEST_BYTES
from penstock.live.batch.hooks import MOST_REFUSED, adopt_message
from penstock.live.batch.job_comment import job_name, read_comment
from penstock.live.protocol import job_hints, messages
from penstock.live.protocol.client import encode_line

ALL = "volume=1GiB,period=60s,phases=20,io-nodes=2"
HINTS = messages.Hints(volume=2**30, period=60, phases=20)


@pytest.mark.parametrize(
    ("comment", "application"),
    [
        ("", ""),
        ("my own", ""),
        ("penstock=auto", ""),
        ("penstock: job=weather", "weather"),
        ("penstock:application=ocean", "ocean"),
        ("grant 17, penstock: application=ocean,volume=1GiB please", "ocean"),
        ("penstock: application=ocean penstock: job=weather", "ocean"),
        ("penstock: job=weather,application=ocean", "ocean"),
        ("penstock: application=ocean penstock: application=late", "ocean"),
        ("penstock: job=job.sh", "job.sh"),
        ("penstock: job=wrap", ""),
        ("penstock: job=python3", ""),
        ("penstock: application=python3", "python3"),
        ("penstock: application=", ""),
    ],
)
def test_the_application_in_a_comment(comment: str, application: str) -> None:
    assert read_comment(comment).application == application


@pytest.mark.parametrize(
    "comment",
    [f"penstock: {ALL}", f"a penstock:{ALL} b", "penstock: " + ALL.replace("s,", "s penstock: ")],
)
def test_the_hints_in_a_comment_are_those_of_penstock_run(comment: str) -> None:
    _, wanted, refused = read_comment(comment)
    assert wanted == job_hints.parse(ALL) == (HINTS, 2)
    assert refused == []


def test_a_hint_may_name_the_class_of_an_application() -> None:
    hinted = job_hints.parse("pattern=shared-strided,request=1MiB").hints
    assert hinted == messages.Hints(pattern="shared-strided", request=2**20)


WRONG = [
    "volume=-1",
    "volume=inf",
    "volume=1e300",
    "volume=0",
    "period=nan",
    "period=1e9",
    "phases=nan",
    "phases=inf",
    "phases=1e18",
    "phases=many",
    "phases=0",
    "io-nodes=-1",
    "io-nodes=1.5",
    "io-nodes=1025",
    "io-nodes=" + "9" * 1000,
    "pattern=random",
    "pattern=",
    "request=0",
    "request=1e300",
    "volum=1GiB",
    "volume",
    "=",
    "\x1b[31m=1",
    "x" * 2000,
]


@pytest.mark.security
@pytest.mark.parametrize("part", WRONG)
def test_a_wrong_hint_is_left_out_alone_and_said(part: str) -> None:
    _, wanted, (why,) = read_comment(f"penstock: {part},period=60s,io-nodes=0")
    if not part.startswith("period"):
        assert wanted == (messages.Hints(period=60), 0)
    assert why.startswith("hint '")
    assert len(why) < 400
    with pytest.raises(InputError) as refusal:
        job_hints.parse(part)
    assert str(refusal.value) == why


@pytest.mark.security
def test_no_comment_makes_a_prolog_fail_or_its_message_too_long() -> None:
    for comment in (
        "penstock: application=" + "x" * 10_000,
        "penstock: " + "wrong=1," * 10_000,
        "penstock: application=\x1b[31m\udcff",
        "penstock: " * 10_000,
        "\0,,,=,=",
    ):
        message = adopt_message(PROLOG | {"SLURM_JOB_COMMENT": comment})
        assert len(message.executable.encode()) <= LONGEST_NAME
        assert len(message.refused) <= MOST_REFUSED
        assert len(encode_line(message)) < MAX_REQUEST_BYTES


def test_long_applications_stay_distinct() -> None:
    comments = [f"penstock: application={'x' * 1000}{end}" for end in "ab"]
    assert len({read_comment(comment).application for comment in comments}) == 2


@pytest.mark.parametrize(
    ("name", "given"),
    [("weather", "weather"), ("a.py", ""), ("srun", ""), ("climate 2", "climate 2")],
)
def test_the_name_that_a_user_gave_to_a_slurm_job(name: str, given: str) -> None:
    assert job_name({"SLURM_JOB_ID": "3", "SLURM_JOB_NAME": name}) == given
    assert job_name({"SLURM_JOB_NAME": name}) == ""
