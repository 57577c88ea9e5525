"""What every policy must hold to, checked by running it: `penstock policies check`, and the tests.

Loading a policy finds what is wrong with its form (penstock.policies._support.problems). This finds
what is wrong with its answers: that the same question has the same answer, that a sharing policy is
simulated by the engine as the controller's own logic decides, that it changes neither jobs nor
view, that it says what it must know, that jobs listed in another order are decided alike, and that
allocators, placers, packers and tuners answer for every job and within what there is. It is a test
on a few workloads, and no proof; `warnings` are of what such a test may miss.
"""

import ast
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from penstock import registry
from penstock.core import answers
from penstock.data import mn4_patterns
from penstock.errors import InputError
from penstock.model import Context, Job, ReadOnlyView, Request, Site, Snapshot
from penstock.policies._support.purity import impure_imports, impurities
from penstock.policies.base import Rule, Sharing
from penstock.sim import engine, reference
from penstock.sim.evaluate import packs
from penstock.sim.generators.io_sets import io_sets, three_profiles
from penstock.sim.knowledge import Knowledge
from penstock.sim.workload import Workload

W_ITERS = (0.02, 1.0, 9.9, 100.0, 31622.0, None)
READS: Mapping[str, frozenset[str]] = {
    "view.progress": frozenset({"progress"}),
    "view.io_done": frozenset({"progress"}),
    "view.expected": frozenset({"io", "remaining"}),
    "view.remaining": frozenset({"remaining"}),
    "view.work_left": frozenset({"work"}),
    "job.w_iter": frozenset({"w_iter"}),
    "request.io": frozenset({"io", "remaining"}),
}
"""What a sharing policy may read, and which of its needs says so."""


def check(kind: str, name: str, options: Mapping[str, Any] | None = None) -> list[str]:
    """Return what a policy of a kind does wrong, one sentence each; InputError: it cannot be made.

    Every check gets a new policy, so that one that keeps a state begins without.
    """

    def make() -> Any:
        return registry.policy(kind, name, options)

    make()
    problems: list[str] = []
    try:
        problems.extend(_CHECKS[kind](make))
    except InputError as error:
        problems.append(str(error))
    except (Exception, SystemExit) as error:  # of the policy itself
        problems.append(f"it raises {type(error).__name__}: {error}")
    return problems


def warnings(kind: str, name: str) -> list[str]:
    """Return what in a policy's source may make it impure, one sentence each."""
    source = inspect.getsourcefile(registry.load(kind, name))
    if source is None:
        return ["its source cannot be read: whether it is pure is not known"]
    tree = ast.parse(Path(source).read_bytes())
    return [
        f"line {line}: {what}; a policy has no clock, chance, file or process of its own"
        for line, what in sorted({*impurities(tree), *impure_imports(tree)})
    ]


def _sharing(make: Callable[[], Sharing]) -> Iterator[str]:
    yield from _same_answers(make)
    yield from _changes(make)
    yield from _needs(make)
    yield from _order(make)
    for label, workload in _workloads():
        for knowledge in (Knowledge(), Knowledge(kind="learned"), Knowledge(kind="noisy")):
            where = f"on {label} with {knowledge.kind} knowledge"
            try:
                native = engine.simulate(workload, make(), knowledge=knowledge)
                again = engine.simulate(workload, make(), knowledge=knowledge)
                slow = reference.simulate(workload, make(), knowledge=knowledge)
            except InputError as error:
                yield f"it cannot be run {where}: {error}"
                continue
            except Exception as error:  # of the policy itself
                yield f"it raises {type(error).__name__} {where}: {error}"
                continue
            if not np.array_equal(native.end, again.end):
                yield f"two runs differ {where}: it reads a clock, or is random without a seed"
            elif not np.array_equal(native.end, slow.end):
                yield (
                    f"simulator and controller decide differently {where}: group(), weight() or "
                    "turn() depend on how often they are called"
                )


def _workloads() -> Iterator[tuple[str, Workload]]:
    """Yield workloads with ties, with jobs that cannot use all bandwidth, and as in a paper."""
    tied = [(3.0, 5.0), (2.0, 1.0)] * 3
    yield (
        "jobs in step",
        Workload(
            compute=[compute for compute, _ in tied * 4],
            io=[io for _, io in tied * 4],
            offsets=np.arange(0, 25, 6),
            release=np.zeros(4),
            profile=np.ones(4),
        ),
    )
    yield "narrow jobs", _narrow_jobs()
    yield "jobs of paper io-sets", io_sets(three_profiles(2, 2, 2), seed=3, horizon=300.0)


def _narrow_jobs() -> Workload:
    rng = np.random.default_rng(7)
    return Workload(
        compute=rng.uniform(0, 5, 40),
        io=rng.uniform(0, 3, 40),
        offsets=np.arange(0, 41, 5),
        release=rng.uniform(0, 4, 8),
        max_share=rng.uniform(0.2, 1, 8),
        profile=np.ones(8),
    )


def _job(w_iter: float | None) -> Job:
    hints = MappingProxyType({"profile": w_iter or 1.0})
    return Job(id="j", serial=1, w_iter=w_iter, hints=hints)


def _same_answers(make: Callable[[], Sharing]) -> Iterator[str]:
    one, other = Rule(make()), Rule(make())
    if one.observes:
        return  # what it answers depends on what it has seen
    for w_iter in W_ITERS:
        job = _job(w_iter)
        request = Request(job=job, arrival=1.0, resources=(0,), io=5.0)
        view = ReadOnlyView(_Spy())
        for method, subject in (("group", job), ("weight", job), ("turn", request)):
            answers = [getattr(rule, method)(subject, view) for rule in (one, one, other)]
            if not answers[0] == answers[1] == answers[2]:
                yield f"{method}() answers the same question in different ways: {answers}"
                return


def _changes(make: Callable[[], Sharing]) -> Iterator[str]:
    """Compare a job and its request with copies: `object.__setattr__` changes what is frozen."""
    rule, view = Rule(make()), ReadOnlyView(_Spy())
    for w_iter in W_ITERS:
        job, same = _job(w_iter), _job(w_iter)
        request = Request(job=job, arrival=1.0, resources=(0,), io=5.0)
        for method, subject in (("group", job), ("weight", job), ("turn", request)):
            getattr(rule, method)(subject, view)
            if job != same or request != Request(job=same, arrival=1.0, resources=(0,), io=5.0):
                yield f"{method}() changes the job or the request that it is shown"
                return


class _Spy:
    """A view, a job and a request that note what is read of them."""

    def __init__(self) -> None:
        self.reads: set[str] = set()
        self.now, self.site = 100.0, Site()
        self.jobs: dict[str, Job] = {}

    def _read(self, name: str, value: float) -> float:
        self.reads.add(name)
        return value

    def progress(self, _: Job) -> float:
        return self._read("view.progress", 40.0)

    def io_done(self, _: Job) -> float:
        return self._read("view.io_done", 8.0)

    def expected(self, _: Request) -> float | None:
        return self._read("view.expected", 5.0)

    def remaining(self, _: Request) -> float:
        return self._read("view.remaining", 4.0)

    def work_left(self, _: Job) -> float:
        return self._read("view.work_left", 50.0)

    def done(self, _: Request) -> float:
        return 1.0

    def age(self, _: Job) -> float:
        return 60.0


class _Noted:
    """A job or request whose estimates cannot be read unnoticed."""

    def __init__(self, subject: Any, reads: set[str], names: Mapping[str, str]) -> None:
        self._subject, self._reads, self._names = subject, reads, names

    def __getattr__(self, name: str) -> Any:
        if name in self._names:
            self._reads.add(self._names[name])
        return getattr(self._subject, name)


def _reads(policy: Sharing) -> set[str]:
    """Return what a sharing policy reads when it is asked once."""
    spy, rule = _Spy(), Rule(policy)
    noted: Any = _Noted(_job(10.0), spy.reads, {"w_iter": "job.w_iter", "serial": "job.serial"})
    plain = Request(job=noted, arrival=1.0, resources=(0,), io=5.0)
    request: Any = _Noted(plain, spy.reads, {"io": "request.io"})
    view = ReadOnlyView(spy)
    rule.group(noted, view)
    rule.weight(noted, view)
    rule.turn(request, view)
    return spy.reads


def _needs(make: Callable[[], Sharing]) -> Iterator[str]:
    policy = make()
    for read in sorted(_reads(policy) & READS.keys()):
        if not READS[read] & policy.needs:
            yield f"it reads {read}, but its needs do not have {' or '.join(sorted(READS[read]))}"


def _order(make: Callable[[], Sharing]) -> Iterator[str]:
    """Run jobs that never ask at one instant in two orders of the list."""
    if "job.serial" in _reads(make()):
        return  # it goes by position on purpose
    forward = _narrow_jobs()
    reverse = np.arange(len(forward))[::-1]
    ends, reversed_ends = (
        engine.simulate(workload, make()).finish
        for workload in (forward, packs.subset(forward, reverse))
    )
    # Sums of other orders differ in their last bits.
    if not np.allclose(ends[reverse], reversed_ends, rtol=1e-9, atol=0.0):
        yield "the same jobs in another order of the list are decided differently"


def unsaid_needs(name: str, options: Mapping[str, Any] | None = None) -> list[str]:
    """Return what a sharing policy reads and does not say; the part of `check` that is quick."""
    try:
        return list(_needs(lambda: registry.sharing(name, options)))
    except (Exception, SystemExit) as error:  # of the policy itself
        return [f"it raises {type(error).__name__}: {error}"]


def sample_jobs(*, direct: bool, resources: int = 24) -> Snapshot:
    """Return jobs with measured curves, on a site with or without direct access."""
    jobs = [
        Job(
            id=f"j{serial}",
            serial=serial,
            nodes=pattern.nodes,
            processes=pattern.processes,
            curve=pattern.curve(),
            volume=1000.0 * (1 + serial),
            compute=50.0 * serial,
            w_iter=60.0,
        )
        for serial, pattern in enumerate(mn4_patterns()[::20])
    ]
    return Snapshot.of(jobs, Site(resources=resources, nodes=512, direct=direct))


def _allocation(make: Callable[[], Any]) -> Iterator[str]:
    for direct in (True, False):
        view = sample_jobs(direct=direct)
        where = "with direct access" if direct else "without direct access"
        try:
            counts = answers.allocate(make(), view)
        except InputError as error:
            # A policy may say that it is only for sites with direct access.
            if direct or "direct" not in str(error):
                yield f"{error} ({where})"
            continue
        if dict(make().allocate(view)) != counts:
            yield f"the same view gets different counts ({where})"


def _placement(make: Callable[[], Any]) -> Iterator[str]:
    view = sample_jobs(direct=False)
    counts = {job: 1 + serial % 4 for serial, job in enumerate(view.jobs)}
    staying = {"j0": (0, 1), "j1": (2,)}
    moving = {"j2": 2, "j3": 1}
    for request, before in ((counts, {}), (moving, staying)):
        try:
            first = answers.place(make(), view, request, before)
            if first != answers.place(make(), view, request, before):
                yield "the same view gets different places"
        except InputError as error:
            yield str(error)


def _packing(make: Callable[[], Any]) -> Iterator[str]:
    jobs = [
        Job(id=f"j{k}", serial=k, nodes=2 ** (k % 4), compute=10.0 + k, volume=3.0 + k % 5)
        for k in range(12)
    ]
    site = Site(resources=2, nodes=32)
    schedules = [make().pack(jobs, site) for _ in range(2)]
    if schedules[0] != schedules[1]:
        yield "the same jobs get different schedules"
    try:
        packs.check(schedules[0], {job.id: job.nodes for job in jobs}, site)
    except InputError as error:
        yield str(error)


def _tuning(make: Callable[[], Any]) -> Iterator[str]:
    values = (125e-6, 250e-6, 500e-6, 1e-3, "off")
    reward = dict(zip(values, (6e8, 7e8, 1e9, 8e8, 5e8), strict=True))
    context = Context(operation="write", pattern="shared-contiguous", size=32768, load=8)
    tuner, twin = make(), make()
    if tuner.best(context, values) is not None:
        yield "best() knows a value before anything was observed; return None"
    for round_ in range(200):
        value = tuner.choose(context, values)
        if value not in values:
            yield f"choose() returned {value!r}, which is not one of the values"
            return
        if value != twin.choose(context, values):
            yield "two tuners with the same observations choose differently"
            return
        for each in (tuner, twin):
            each.learn(context, value, reward[value] * (1 + 0.01 * math.sin(round_)))
    restored = make()
    restored.restore(tuner.learned())
    if restored.learned() != tuner.learned():
        yield "restore() does not give back what learned() returned"


_CHECKS: Mapping[str, Callable[[Callable[[], Any]], Iterator[str]]] = {
    "allocation": _allocation,
    "packing": _packing,
    "placement": _placement,
    "sharing": _sharing,
    "tuning": _tuning,
}
