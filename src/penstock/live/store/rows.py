"""What the store keeps beside the records of jobs: knowledge of job families, and totals."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from penstock.learn.access_class import AccessClass, ClassCurve
from penstock.learn.imported import LONGEST_KEY
from penstock.learn.knowledge import Knowledge
from penstock.live.protocol.application_record import ApplicationRecord
from penstock.live.protocol.job_record import JobRecord

FAMILIES_PER_USER = 5000
"""A user with ever new program names loses their own oldest families, and no one else's."""


CLASS_MEMBERS = 8
"""Applications of a user that the curve of a class is made of, those that were learnt of last."""
CLASS_USERS = 32
"""Other users whose applications it is made of, those of whom was learnt last."""
OWN = 2
"""Applications of the user's own, with curves, that make other users' unnecessary."""


def storable(text: str, most: int = LONGEST_KEY) -> str:
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
class RecalledKnowledge:
    """The knowledge of a family; not `exact`: of the nearest other size."""

    family: Family
    knowledge: Knowledge
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Totals over all jobs that ever ended."""

    forwarded_bytes: int = 0
    carried_bytes: int = 0
    direct_bytes: int = 0
    fail_opens: int = 0

    def plus(self, job: JobRecord) -> "Totals":
        """Return the totals with one more job."""
        return Totals(**{name: getattr(self, name) + getattr(job, name) for name in TOTALS})

    def minus(self, job: JobRecord) -> "Totals":
        """Return the totals without a job that has not ended after all."""
        return Totals(**{name: max(getattr(self, name) - getattr(job, name), 0) for name in TOTALS})


TOTALS = tuple(each.name for each in fields(Totals))


Stored = Sequence[Any]
"""A row of the store, until its knowledge is needed."""


class Families:
    """The knowledge of all families, in memory."""

    def __init__(
        self,
        entries: Iterable[tuple[Family, Knowledge | Stored]] = (),
        most_per_user: int = FAMILIES_PER_USER,
        decode: Callable[[Stored], Knowledge] = lambda _: Knowledge(),
        class_of: Callable[[Stored], AccessClass | None] = lambda _: None,
    ) -> None:
        """`entries` come with the longest unchanged first; `decode` reads those that are stored.

        A site knows many applications, and few of them run at a time. `class_of` returns the class
        of one that is not decoded.
        """
        self.most_per_user = most_per_user
        self._decode, self._class_of = decode, class_of
        self._classes: dict[AccessClass, dict[Family, None]] = {}  # the longest unchanged first
        self._curves: dict[tuple[AccessClass, str], ClassCurve | None] = {}
        self._sizes: dict[tuple[str, str], dict[int, Knowledge | Stored]] = {}
        self._of_user: dict[str, dict[Family, None]] = {}  # the longest unchanged first
        for family, knowledge in entries:
            self._put(family, knowledge)

    def __len__(self) -> int:
        return sum(map(len, self._of_user.values()))

    def __contains__(self, family: Family) -> bool:
        return family in self._of_user.get(family.user, ())

    def users(self) -> list[str]:
        """Return the users of all families."""
        return list(self._of_user)

    def of(self, user: str) -> list[Family]:
        """Return the families of a user, the longest unchanged first."""
        return list(self._of_user.get(user, ()))

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
        nearest = replace(family, nodes=nodes)
        return RecalledKnowledge(
            family=nearest, knowledge=self.known(nearest), exact=nodes == family.nodes
        )

    def known(self, family: Family) -> Knowledge:
        """Return the knowledge of exactly this family, which may be none."""
        sizes = self._sizes.get((family.user, family.executable), {})
        entry = sizes.get(family.nodes)
        if entry is None:
            return Knowledge()
        if not isinstance(entry, Knowledge):
            entry = sizes[family.nodes] = self._decode(entry)
        return entry

    def with_prior(
        self, user: str, known: Knowledge, hinted: AccessClass | None = None
    ) -> Knowledge:
        """Return knowledge of a user's application with what its class suggests.

        Its class is the one that was detected, else the one that its user names.
        """
        its_class = known.access_class or hinted
        return known if its_class is None else replace(known, prior=self._prior(its_class, user))

    def _prior(self, its_class: AccessClass, user: str) -> ClassCurve | None:
        """Return the curve of a class: of the user's own applications, else of other users'."""
        if (its_class, user) not in self._curves:
            by_user: dict[str, list[Mapping[int, float]]] = {user: []}
            for family in reversed(self._classes.get(its_class, {})):
                if family.user not in by_user and len(by_user) > CLASS_USERS:
                    continue
                curves = by_user.setdefault(family.user, [])
                if len(curves) < CLASS_MEMBERS:
                    observed = self.known(family).history.curve
                    curves.append({count: point.median for count, point in observed.items()})
            own = ClassCurve.of(its_class, by_user.pop(user))
            if own is None or own.applications < OWN:
                own = ClassCurve.of_others(its_class, list(by_user.values()))
            self._curves[its_class, user] = own
        return self._curves[its_class, user]

    def record(self, family: Family) -> ApplicationRecord:
        """Return the record of a family."""
        known = self.with_prior(family.user, self.known(family))
        return ApplicationRecord.of(family.user, family.executable, family.nodes, known)

    def learn(self, family: Family, knowledge: Knowledge) -> Family | None:
        """Replace the knowledge of a family; return a family that was forgotten for it."""
        self._put(family, knowledge)
        of_user = self._of_user[family.user]
        if len(of_user) <= self.most_per_user:
            return None
        oldest = next(iter(of_user))
        self.forget(oldest)
        return oldest

    def forget(self, family: Family) -> None:
        """Remove a family."""
        of_user = self._of_user[family.user]
        del of_user[family]
        if not of_user:
            del self._of_user[family.user]
        sizes = self._sizes[family.user, family.executable]
        self._leave_class(family, sizes.pop(family.nodes))
        if not sizes:
            del self._sizes[family.user, family.executable]

    def _put(self, family: Family, knowledge: Knowledge | Stored) -> None:
        sizes = self._sizes.setdefault((family.user, family.executable), {})
        if family.nodes in sizes:
            self._leave_class(family, sizes[family.nodes])
        sizes[family.nodes] = knowledge
        if (its_class := self._class(knowledge)) is not None:
            self._classes.setdefault(its_class, {})[family] = None
            self._forget_curves(its_class)
        of_user = self._of_user.setdefault(family.user, {})
        of_user.pop(family, None)
        of_user[family] = None

    def _class(self, knowledge: Knowledge | Stored) -> AccessClass | None:
        if isinstance(knowledge, Knowledge):
            return knowledge.access_class
        return self._class_of(knowledge)

    def _leave_class(self, family: Family, knowledge: Knowledge | Stored) -> None:
        if (its_class := self._class(knowledge)) is not None:
            self._classes[its_class].pop(family, None)
            self._forget_curves(its_class)

    def _forget_curves(self, its_class: AccessClass) -> None:
        for key in [key for key in self._curves if key[0] == its_class]:
            del self._curves[key]
