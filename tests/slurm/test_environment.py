"""What Slurm tells its hooks is what the agent is told."""

import pytest

from penstock.errors import InputError
from penstock.live.batch.hooks import adopt_message, release_message

PROLOG = {
    "SLURM_JOB_ID": "17",
    "SLURM_JOB_UID": "1000",
    "SLURM_JOB_GID": "100",
    "SLURM_JOB_USER": "ada",
    "SLURM_JOB_NUM_NODES": "4",
    "SLURM_JOB_CPUS_PER_NODE": "2(x3),1",
    "SLURM_JOB_COMMENT": "penstock: job=weather",
    "SLURM_JOB_PARTITION": "gpu",
    "SLURMD_NODENAME": "n2",
}


def test_a_prolog_tells_whose_job_it_is_and_how_large() -> None:
    message = adopt_message(PROLOG)
    assert (message.job, message.name, message.node) == ("17", "slurm-17", "n2")
    assert (message.uid, message.gid, message.user) == (1000, 100, "ada")
    assert (message.nodes, message.processes, message.executable) == (4, 7, "weather")
    assert message.partition == "gpu"


def test_what_slurm_does_not_tell_is_not_made_up() -> None:
    message = adopt_message(
        {"SLURM_JOB_ID": "17", "SLURM_JOB_UID": "1000", "SLURM_JOB_COMMENT": "mine"}
    )
    assert (message.gid, message.user) == (1000, "1000")
    assert (message.nodes, message.processes, message.executable) == (1, None, "")


@pytest.mark.parametrize("wrong", [{"SLURM_JOB_UID": "root"}, {"SLURM_JOB_NUM_NODES": "many"}])
def test_an_environment_that_is_no_prologs_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(InputError, match="not a Slurm prolog's"):
        adopt_message(PROLOG | wrong)


@pytest.mark.parametrize("missing", ["SLURM_JOB_ID", "SLURM_JOB_UID"])
def test_without_a_job_there_is_nothing_to_adopt(missing: str) -> None:
    with pytest.raises(InputError, match=missing):
        adopt_message({k: v for k, v in PROLOG.items() if k != missing})


@pytest.mark.parametrize(
    ("code", "status"), [("0:0", 0), ("7:0", 7), ("0:9", 137), ("0:999", 255), ("", 0), ("?:?", 0)]
)
def test_an_epilog_tells_how_the_job_ended(code: str, status: int) -> None:
    assert release_message({"SLURM_JOB_ID": "17", "SLURM_JOB_EXIT_CODE2": code}).status == status
