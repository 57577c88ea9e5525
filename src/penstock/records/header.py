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
from penstock.policies.base import CheckedSharing, Placer, Sharing

FORMAT = "penstock-record"
VERSION = 1
MOST_OBSERVATIONS = 1e9


class PolicySpec(msgspec.Struct, frozen=True, kw_only=True):
    """A policy: its name in the registry, or its file, and its options."""

    policy: str
    options: dict[str, Any] = {}

    def make(self, kind: str) -> Any:
        """Return the policy."""
        return registry.policy(kind, self.policy, self.options)


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """Everything needed to make the same Manager for a replay."""

    format: str = FORMAT
    version: int = VERSION
    penstock: str = __version__
    run: str
    """Id of the controller's run; the same in all parts of its record."""
    part: Annotated[int, Meta(ge=1)] = 1
    epoch: Annotated[float, Meta(ge=0, le=1e11)]
    """The time 0 of the events, in seconds since 1970."""
    began: Annotated[float, Meta(ge=0, le=1e12)] = 0.0
    """Start of this part, in the events' seconds."""
    site: Site
    sharing: PolicySpec
    allocation: PolicySpec | None = None
    """None: jobs have their own resources."""
    placement: PolicySpec | None = None
    """None: the allocation also places jobs."""
    remap_delay: float = 0.0
    learn: dict[str, bool | float] | None = None
    """Options of the estimator of w_iter; None: jobs bring their own. An estimator starts from the
    job's w_iter, weighted by its hint `observations`."""
    fair_users: bool = False
    """Turns alternate between users."""
    running: list[JobStarted] = []
    """The jobs that ran at the start of this part."""
    lost: Annotated[int, Meta(ge=0)] = 0
    """Events missing between the part before and this one, because they could not be written."""

    def manager(self) -> tuple[Manager, Ledger]:
        """Return a new Manager with these policies, and the ledger that is its view."""
        ledger = Ledger(site=self.site)
        arbiter = self._arbiter()
        manager = Manager(
            sharing=cast(Sharing, CheckedSharing(self.sharing.make("sharing"))),
            view=ledger,
            learn=None if self.learn is None else self._period,
            arbitrate=None if arbiter is None else arbiter.handle,
            fair_users=self.fair_users,
        )
        ledger.attend(manager)
        return manager, ledger

    def policy_files(self) -> list[str]:
        """Return the policies that are files, not names in the registry."""
        specs = filter(None, (self.sharing, self.allocation, self.placement))
        return [spec.policy for spec in specs if ".py:" in spec.policy]

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
    """Return the prior that the event itself carries: a replay has no store."""
    if job.w_iter is None:
        return None
    hint = job.hints.get("observations", 1)
    count = int(hint) if isinstance(hint, int | float) and 1 <= hint <= MOST_OBSERVATIONS else 1
    return Prior(w_iter=job.w_iter, observations=count)
