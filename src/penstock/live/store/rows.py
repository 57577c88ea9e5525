"""What the controller remembers: job families, running jobs, ended jobs, totals."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace

from penstock.live.protocol.job_record import JobRecord

FAMILIES_A_USER = 5000
"""Families kept of one user: who runs ever new names forgets his own, and no one else's."""
LONGEST_NAME = 512
"""Bytes of a user's or an executable's name: PostgreSQL's index takes no key beyond 2,704."""


def storable(text: str, most: int = LONGEST_NAME) -> str:
    """Return a text as any database takes it: UTF-8, no zero byte, not too long."""
    if len(text) <= most and text.isascii() and "\0" not in text:
        return text
    encoded = text.replace("\0", "\ufffd").encode("utf-8", "replace")
    return encoded[:most].decode("utf-8", "ignore")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Jobs that are expected to behave alike."""

    user: str
    executable: str
    nodes: int

    def __post_init__(self) -> None:
        # Cut here, so that what is looked up is what was kept.
        object.__setattr__(self, "user", storable(self.user))
        object.__setattr__(self, "executable", storable(self.executable))
        object.__setattr__(self, "nodes", max(self.nodes, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What was learned of a family; None where nobody knows."""

    w_iter: float | None = None  # seconds
    observations: int = 0
    phase_bytes: float | None = None
    bandwidth: float | None = None  # bytes a second, without contention
    pattern: str | None = None
    curve: Mapping[int, float] | None = None  # bandwidth by I/O nodes
    updated: float = 0.0  # seconds since the epoch

    def over(self, old: "Knowledge") -> "Knowledge":
        """Return this knowledge, with the old one's word where this has none."""
        unsaid = {name: getattr(old, name) for name in _UNSAID if getattr(self, name) is None}
        return replace(self, **unsaid) if unsaid else self


_UNSAID = [each.name for each in fields(Knowledge) if each.default is None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """Knowledge that was asked for; not `exact`: it is another size's."""

    family: Family
    knowledge: Knowledge
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What all jobs that ended ever did."""

    forwarded_bytes: int = 0
    direct_bytes: int = 0
    fail_opens: int = 0

    def plus(self, job: JobRecord) -> "Totals":
        """Return the totals with one more job."""
        return Totals(
            forwarded_bytes=self.forwarded_bytes + job.forwarded_bytes,
            direct_bytes=self.direct_bytes + job.direct_bytes,
            fail_opens=self.fail_opens + job.fail_opens,
        )

    def minus(self, job: JobRecord) -> "Totals":
        """Return the totals without a job that had not ended after all."""
        return Totals(
            forwarded_bytes=max(self.forwarded_bytes - job.forwarded_bytes, 0),
            direct_bytes=max(self.direct_bytes - job.direct_bytes, 0),
            fail_opens=max(self.fail_opens - job.fail_opens, 0),
        )


class Families:
    """All knowledge by family, in memory."""

    def __init__(self, known: Iterable[tuple[Family, Knowledge]] = ()) -> None:
        """Take in what is known, the longest unchanged first."""
        self._sizes: dict[tuple[str, str], dict[int, Knowledge]] = {}
        self._of_user: dict[str, dict[Family, None]] = {}  # the longest unchanged first
        for family, knowledge in known:
            self._put(family, knowledge)

    def __len__(self) -> int:
        return sum(map(len, self._of_user.values()))

    def recall(self, family: Family) -> Recalled | None:
        """Return what is known of a family, or of the nearest size of the same user's executable.

        Nearest is by the ratio of sizes; of two as near, the smaller. Other users' jobs are never
        looked at: what they run, and how, is their own affair.
        """
        sizes = self._sizes.get((family.user, family.executable))
        if not sizes:
            return None
        wanted = math.log2(family.nodes)
        nodes = min(sizes, key=lambda n: (abs(math.log2(n) - wanted), n))
        return Recalled(
            family=replace(family, nodes=nodes),
            knowledge=sizes[nodes],
            exact=nodes == family.nodes,
        )

    def learn(self, family: Family, knowledge: Knowledge) -> tuple[Knowledge, Family | None]:
        """Merge new knowledge in; return the whole of it, and the family that was forgotten."""
        old = self._sizes.get((family.user, family.executable), {}).get(family.nodes)
        merged = knowledge if old is None else knowledge.over(old)
        self._put(family, merged)
        of_user = self._of_user[family.user]
        if len(of_user) <= FAMILIES_A_USER:
            return merged, None
        oldest = next(iter(of_user))
        del of_user[oldest]
        sizes = self._sizes[oldest.user, oldest.executable]
        del sizes[oldest.nodes]
        if not sizes:
            del self._sizes[oldest.user, oldest.executable]
        return merged, oldest

    def _put(self, family: Family, knowledge: Knowledge) -> None:
        self._sizes.setdefault((family.user, family.executable), {})[family.nodes] = knowledge
        of_user = self._of_user.setdefault(family.user, {})
        of_user.pop(family, None)
        of_user[family] = None
