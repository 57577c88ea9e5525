"""The first line of a record: the site, the policies, and which part of which run it is."""

from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta

from penstock import __version__, registry
from penstock.core.arbiter import Arbiter
from penstock.core.ledger import Ledger
from penstock.core.manager import Manager
from penstock.errors import InputError
from penstock.learn.periods import Period, Prior
from penstock.model import Job, JobStarted, Site
from penstock.policies.base import Checked, Placer, Sharing

FORMAT = "penstock-record"
VERSION = 1
MOST_OBSERVATIONS = 1e9


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """A policy by its name in the registry, with its options."""

    policy: str
    options: dict[str, Any] = {}

    def make(self, kind: str) -> Any:
        """Return the policy."""
        return registry.policy(kind, self.policy, self.options)


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """All that a Manager is made of, so that a replay has the same one."""

    format: str = FORMAT
    version: int = VERSION
    penstock: str = __version__
    run: str
    """Names the run of the controller; all parts of its record have the same."""
    part: Annotated[int, Meta(ge=1)] = 1
    epoch: Annotated[float, Meta(ge=0, le=1e11)]
    """When the time was 0, in seconds since 1970."""
    began: Annotated[float, Meta(ge=0, le=1e12)] = 0.0
    """When this part began, in the seconds of the events."""
    site: Site
    sharing: Chosen
    allocation: Chosen | None = None
    """None: jobs have resources of their own."""
    placement: Chosen | None = None
    """None: the allocation places jobs itself."""
    remap_delay: float = 0.0
    learn: dict[str, bool | float] | None = None
    """The options of the estimator of w_iter; None: jobs bring theirs. An estimator starts from the
    job's w_iter, which counts as many observations as its hint `observations` says."""
    fair_users: bool = False
    """Turns alternate between users."""
    running: list[JobStarted] = []
    """The jobs that ran when this part began."""
    lost: Annotated[int, Meta(ge=0)] = 0
    """Events that are missing between the part before and this one: they could not be written."""

    def manager(self) -> tuple[Manager, Ledger]:
        """Return a fresh Manager of these policies, and the ledger that is its view."""
        ledger = Ledger(site=self.site)
        arbiter = self._arbiter()
        manager = Manager(
            sharing=cast(Sharing, Checked(self.sharing.make("sharing"))),
            view=ledger,
            learn=None if self.learn is None else self._period,
            arbitrate=None if arbiter is None else arbiter.handle,
            fair_users=self.fair_users,
        )
        ledger.attend(manager)
        return manager, ledger

    def policy_files(self) -> list[str]:
        """Return the policies that are files of somebody's, not names in the registry."""
        chosen = filter(None, (self.sharing, self.allocation, self.placement))
        return [made.policy for made in chosen if ".py:" in made.policy]

    def _period(self, job: Job) -> Period:
        options: dict[str, Any] = dict(self.learn or {})
        try:
            return Period(prior=_prior(job), **options)
        except TypeError as error:
            raise InputError(f"learn is {self.learn}: {error}") from error

    def _arbiter(self) -> Arbiter | None:
        if self.allocation is None:
            return None
        allocator = self.allocation.make("allocation")
        placer = allocator if self.placement is None else self.placement.make("placement")
        if not isinstance(placer, Placer):
            raise InputError(
                f"allocation {self.allocation.policy!r} does not say where jobs go; "
                "the header must have a placement"
            )
        return Arbiter(
            allocator=allocator, placer=placer, remap_delay=self.remap_delay, lenient=True
        )


def _prior(job: Job) -> Prior | None:
    """Return what an event tells of the job's family: a replay has nothing else."""
    if job.w_iter is None:
        return None
    told = job.hints.get("observations", 1)
    count = int(told) if isinstance(told, int | float) and 1 <= told <= MOST_OBSERVATIONS else 1
    return Prior(w_iter=job.w_iter, observations=count)
