"""What Slurm knows of a job's application and its I/O: the job's comment, name and partition.

A comment may contain `penstock: application=NAME,volume=1GiB,io-nodes=2`, between other words.
`deploy/slurm/job_submit.lua` adds the job's name as `penstock: job=NAME`, because Slurm does not
pass it to prologs. Anybody can submit any comment: nothing in it makes a prolog fail.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from penstock.learn.applications import bounded, runs_others
from penstock.live.protocol import job_hints
from penstock.live.protocol.job_hints import JobHints
from penstock.live.protocol.messages import LONGEST_PARTITION

LONGEST_COMMENT = 4096
_OURS = re.compile(r"\bpenstock: ?(\S+)")
_NAMED_BY_SLURM = {"", "sbatch", "wrap", "interactive", "penstock"}
_SCRIPT = re.compile(r".*\.(sh|bash|csh|zsh|slurm|slm|sbatch|batch|job|py)", re.DOTALL)


class Description(NamedTuple):
    """What a comment says of a job; `application` is empty if it says nothing."""

    application: str
    wanted: JobHints
    refused: list[str]


def read_comment(comment: str) -> Description:
    """Read what a job's comment says to Penstock."""
    refused: list[str] = []
    if len(comment) > LONGEST_COMMENT:
        comment = comment[:LONGEST_COMMENT]
        refused.append(f"the comment after {LONGEST_COMMENT:,} characters is not read")
    names: dict[str, str] = {}
    hints: list[str] = []
    for part in ",".join(_OURS.findall(comment)).split(","):
        kind, _, name = part.partition("=")
        if kind in ("application", "job"):
            names.setdefault(kind, name)
        else:
            hints.append(part)
    wanted = job_hints.parse(",".join(hints), refused)
    return Description(_application(**names), wanted, refused)


def _application(application: str = "", job: str = "") -> str:
    return bounded(application or ("" if _says_nothing(job) else job))


def _says_nothing(name: str) -> bool:
    """Tell a name that Slurm gave for want of another, such as that of an interpreter."""
    return name in _NAMED_BY_SLURM or runs_others(name)


def job_name(environment: Mapping[str, str]) -> str:
    """Return the name of the Slurm job that this process is part of, as its user gave it.

    Slurm names a job without a name by its script, which may run several applications: "" then.
    """
    name = environment.get("SLURM_JOB_NAME", "") if "SLURM_JOB_ID" in environment else ""
    return "" if _says_nothing(name) or _SCRIPT.fullmatch(name) else bounded(name)


def job_partition(environment: Mapping[str, str]) -> str:
    """Return the partition of the Slurm job that this process is part of; "" outside of one."""
    return environment.get("SLURM_JOB_PARTITION", "")[:LONGEST_PARTITION]
