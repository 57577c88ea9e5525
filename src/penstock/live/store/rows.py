"""What the store keeps beside the records of jobs: knowledge of job families, and totals."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace

from penstock.live.protocol.job_record import JobRecord

FAMILIES_PER_USER = 5000
"""A user with ever new program names loses their own oldest families, and no one else's."""
LONGEST_NAME = 512
"""Bytes of a user's or an executable's name; keys of PostgreSQL's index have at most 2,704."""


def storable(text: str, most: int = LONGEST_NAME) -> str:
    """Return a text that every database accepts: UTF-8, no zero byte, not too long."""
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
        # Cut here, so that lookups use the stored key.
        object.__setattr__(self, "user", storable(self.user))
        object.__setattr__(self, "executable", storable(self.executable))
        object.__setattr__(self, "nodes", max(self.nodes, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What was learned about a family; None: not known."""

    w_iter: float | None = None  # seconds
    observations: int = 0
    phase_bytes: float | None = None
    bandwidth: float | None = None  # bytes per second, without contention
    pattern: str | None = None
    curve: Mapping[int, float] | None = None  # bandwidth by number of I/O nodes
    updated: float = 0.0  # seconds since the epoch

    def over(self, old: "Knowledge") -> "Knowledge":
        """Return this knowledge, with the old values where this has None."""
        missing = {name: getattr(old, name) for name in _OPTIONAL if getattr(self, name) is None}
        return replace(self, **missing) if missing else self


_OPTIONAL = [each.name for each in fields(Knowledge) if each.default is None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledKnowledge:
    """The knowledge of a family; not `exact`: of the nearest other size."""

    family: Family
    knowledge: Knowledge
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Totals over all jobs that ever ended."""

    forwarded_bytes: int = 0
    direct_bytes: int = 0
    fail_opens: int = 0

    def plus(self, job: JobRecord) -> "Totals":
        """Return the totals with one more job."""
        return Totals(**{name: getattr(self, name) + getattr(job, name) for name in TOTALS})

    def minus(self, job: JobRecord) -> "Totals":
        """Return the totals without a job that has not ended after all."""
        return Totals(**{name: max(getattr(self, name) - getattr(job, name), 0) for name in TOTALS})


TOTALS = tuple(each.name for each in fields(Totals))


class Families:
    """The knowledge of all families, in memory."""

    def __init__(
        self,
        entries: Iterable[tuple[Family, Knowledge]] = (),
        most_per_user: int = FAMILIES_PER_USER,
    ) -> None:
        """`entries` come with the longest unchanged first."""
        self.most_per_user = most_per_user
        self._sizes: dict[tuple[str, str], dict[int, Knowledge]] = {}
        self._of_user: dict[str, dict[Family, None]] = {}  # the longest unchanged first
        for family, knowledge in entries:
            self._put(family, knowledge)

    def __len__(self) -> int:
        return sum(map(len, self._of_user.values()))

    def recall(self, family: Family) -> RecalledKnowledge | None:
        """Return the knowledge of a family, or of the nearest size of the user's executable.

        Nearest is by the ratio of sizes; of two equally near, the smaller. Other users' jobs are
        never used: they are private.
        """
        sizes = self._sizes.get((family.user, family.executable))
        if not sizes:
            return None
        size = math.log2(family.nodes)
        nodes = min(sizes, key=lambda n: (abs(math.log2(n) - size), n))
        return RecalledKnowledge(
            family=replace(family, nodes=nodes),
            knowledge=sizes[nodes],
            exact=nodes == family.nodes,
        )

    def learn(self, family: Family, knowledge: Knowledge) -> tuple[Knowledge, Family | None]:
        """Merge new knowledge; return the result, and a family that was forgotten for it."""
        old = self._sizes.get((family.user, family.executable), {}).get(family.nodes)
        merged = knowledge if old is None else knowledge.over(old)
        self._put(family, merged)
        of_user = self._of_user[family.user]
        if len(of_user) <= self.most_per_user:
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
