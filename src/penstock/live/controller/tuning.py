"""Runs the Council of a deployment: queries its I/O nodes, sets them, saves what was learnt.

Every interval all I/O nodes are asked for their observations; what the Councils choose is set if
the site's mode is enforce. The learned state is saved every few seconds, one file per policy, and
the next controller continues from it; a damaged file is moved aside, never overwritten. The model
of access patterns is loaded again when its file changes.

What was learnt while an I/O node served one application alone is also kept with that application,
by access pattern: the next run of it starts from there, and its I/O nodes prefer it to what other
applications with the same pattern did best with.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from penstock.config.tuning import TuningSection
from penstock.core.council import Council, Experience
from penstock.errors import InputError
from penstock.files import reason, replacing
from penstock.learn.knowledge import Knowledge
from penstock.learn.tuned import TunedValues, pattern_of
from penstock.live.controller.detection import Detection, ModelFile, query
from penstock.live.controller.io_nodes import IoNodes
from penstock.live.controller.job_table import JobEntry
from penstock.live.protocol import messages as wire
from penstock.live.protocol.io_node_record import NodeTuning, TuningStatus
from penstock.model import Context, Observation, Tune, Value

FORMAT = 1
SAVE_INTERVAL = 10.0
"""Seconds between two checkpoints of the learned state."""

log = logging.getLogger("penstock.controller")


class Checkpoint:
    """A file with the learned state of a policy."""

    def __init__(self, folder: Path, policy: str, clock: Callable[[], float] = time.time) -> None:
        file, _, name = policy.rpartition(":")
        self.path = folder / f"{Path(file).stem}-{name}.json" if file else folder / f"{name}.json"
        self._policy, self._clock = policy, clock

    def read(self, experience: Experience) -> None:
        """Continue from the file if it exists; a damaged one is moved aside, and logged."""
        if not self.path.is_file():
            return
        try:
            saved = msgspec.json.decode(self.path.read_bytes())
            if not isinstance(saved, dict) or saved.get("format") != FORMAT:
                raise InputError("it is of another version")
            experience.restore(saved["learned"])
        except Exception as error:  # a tuner's file may raise anything
            aside = self._aside()
            log.warning(
                "%s cannot be read (%s): moved aside as %s", self.path, reason(error), aside.name
            )
            try:
                self.path.rename(aside)
            except OSError as why:
                raise InputError(
                    f"{self.path} is damaged and cannot be moved aside: {why}"
                ) from why

    def write(self, learned: Mapping[str, Any]) -> None:
        """Save a learned state, completely or not at all."""
        self.path.parent.mkdir(exist_ok=True)
        state = {
            "format": FORMAT,
            "policy": self._policy,
            "saved": self._clock(),
            "learned": learned,
        }
        with replacing(self.path) as unfinished:
            unfinished.write_bytes(msgspec.json.encode(state))

    def _aside(self) -> Path:
        names = (self.path.with_suffix(f".damaged-{k}") for k in range(1, 1000))
        return next(path for path in names if not path.exists())


class Applications(Protocol):
    """What is kept of applications: a JobArchive."""

    def keep_tuned(
        self, job: JobEntry, context: Context, parameter: str, value: Value, rate: float
    ) -> None:
        """Keep how fast an I/O node served a job's application alone with a value."""

    def own_knowledge(self, job: JobEntry) -> Knowledge:
        """Return what is known of a job's application."""
        ...


class Tuning:
    """Tunes a deployment's I/O nodes; `enforced` says whether they are to be set at all."""

    def __init__(
        self,
        section: TuningSection,
        settings: wire.Settings,
        io_nodes: IoNodes,
        folder: Path,
        *,
        enforced: Callable[[], bool],
        detection: Detection | None = None,
        applications: Applications | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.section = section
        self.parameters = section.parameters(settings.given())
        _check(section, self.parameters, settings)
        self._io_nodes, self._detection = io_nodes, detection
        self._applications = applications
        self._enforced, self._clock = enforced, clock
        self._interval, self._deadline = section.seconds()
        self._model = ModelFile(section.model)
        self.experience = Experience(
            {p.name: section.tuner(seed=k) for k, p in enumerate(self.parameters)},
            interruptible=False,  # SIGINT stops the controller by a handler of its own
        )
        self._checkpoint = Checkpoint(folder, section.policy, wall_clock)
        self._checkpoint.read(self.experience)
        size = section.group or len(io_nodes.nodes) or 1
        self.councils = [
            Council(
                self.parameters,
                self.experience,
                self._model.model,
                guard=section.guard,
            )
            for _ in range(0, len(io_nodes.nodes), size)
        ]
        self._size = size
        self._setting: set[asyncio.Task[None]] = set()
        self.watch: Callable[[], None] = lambda: None
        """Called after every choice."""

    def up(self, number: int) -> None:
        """An I/O node serves."""
        with _isolated("adding an I/O node"):
            self._set([self._council(number).joined(number)])

    def down(self, number: int) -> None:
        """An I/O node is gone."""
        with _isolated("removing an I/O node"):
            self._council(number).left(number)

    async def run(self) -> None:
        """Run until cancelled; then call `save`."""
        saved = due = self._clock()
        faults = 0
        while True:
            due = max(due + self._interval, self._clock())
            await asyncio.sleep(due - self._clock())
            with _isolated("an interval"):
                await self._round()
                if (model := await asyncio.to_thread(self._model.refresh)) is not None:
                    for council in self.councils:
                        council.detector = model
            if self.experience.faults > faults:
                faults = self.experience.faults
                log.warning("%s (%d so far)", self.experience.fault, faults)
            if self._clock() - saved >= SAVE_INTERVAL:
                saved = self._clock()
                await self.save()

    async def save(self) -> None:
        """Save the learned state; if that fails, the last saved state remains."""
        with _isolated("saving the learned state"):
            try:
                await asyncio.to_thread(self._checkpoint.write, self.experience.learned())
            except (OSError, InputError) as error:
                log.warning("the learned state is not saved: %s", reason(error))

    def status(self) -> TuningStatus:
        """Return the tuned parameters, and the totals over all rounds."""
        councils = self.councils
        return TuningStatus(
            policy=self.section.policy,
            parameters=[p.name for p in self.parameters],
            applied=self._applied(),
            rounds=sum(c.rounds for c in councils),
            explored=sum(c.explored for c in councils),
            guarded=sum(c.guarded for c in councils),
            missed=sum(c.missed for c in councils),
            exploring=sorted({c.exploring for c in councils if c.exploring}),
            contexts=len(self.experience.accounts),
            faults=self.experience.faults,
        )

    def node(self, number: int) -> NodeTuning:
        """Return the values of an I/O node, and the access pattern of its last report."""
        council = self._council(number)
        values = dict(council.has.get(number, {}))
        tuning = NodeTuning(tuned=values, chosen=dict(council.chosen.get(number, {})))
        report = council.last.get(number)
        if report is None:
            return tuning
        return msgspec.structs.replace(
            tuning,
            pattern=report.pattern,
            confidence=report.confidence,
            rate=report.rate,
            operation=None if report.context is None else report.context.operation,
        )

    def _council(self, number: int) -> Council:
        return self.councils[number // self._size]

    def _applied(self) -> bool:
        return self._enforced() and not self.section.dry_run

    async def _round(self) -> None:
        """Query all I/O nodes, and choose, without those that do not answer in time."""
        numbers = [io_node.number for io_node in self._io_nodes.nodes]
        until = self._clock() + self._deadline
        await query(self._io_nodes, numbers, self._receive, until=until, clock=self._clock)
        self.experience.teach()
        for council in self.councils:
            self._set(council.choose())
        self.watch()
        if not self._applied():
            self._put_back()

    def _receive(self, number: int, answer: Any) -> None:
        if isinstance(answer, wire.NodeObservation):
            with _isolated("a report"), suppress(ConnectionError):  # invalid: as if none came
                self._observed(number, answer.to_observation(), answer)

    def _observed(
        self, number: int, observation: Observation, report: wire.NodeObservation
    ) -> None:
        council = self._council(number)
        reward = council.observed(number, observation, report.settings)
        if self._detection is None:
            return
        job = self._detection.application(number, observation, report.jobs)
        context = council.last[number].context if number in council.last else None
        if not observation.moved:
            return  # whoever it served before may go on
        if job is None or context is None:
            council.prefer(number, {})
            return
        self._detection.detected(job, context, observation.moved)
        if self._applications is not None:
            if reward is not None:
                self._applications.keep_tuned(
                    job, context, reward.parameter, reward.value, reward.rate
                )
            tuned = self._applications.own_knowledge(job).tuned
            council.prefer(number, self._best(tuned, pattern_of(context)))

    def began(self, job: JobEntry, numbers: Iterable[int]) -> None:
        """A job begins, and these I/O nodes serve its application alone."""
        if self._applications is None:
            return
        known = self._applications.own_knowledge(job)
        values = self._best(known.tuned, known.tuned.usual(known.pattern))
        if not values:
            return
        with _isolated("a job that begins"):
            tunes = []
            for number in numbers:
                self._council(number).prefer(number, values)
                tunes.append(self._council(number).begin(number))
            self._set(tune for tune in tunes if tune is not None)
        log.info("job %s: its I/O nodes start from what its application did best with", job.id)

    def _best(self, tuned: TunedValues, pattern: str | None) -> dict[str, Value]:
        if pattern is None:
            return {}
        best = {p.name: tuned.best(pattern, p.name, p.values) for p in self.parameters}
        return {name: value for name, value in best.items() if value is not None}

    def _set(self, tunes: Iterable[Tune]) -> None:
        if self._applied():
            self._send(tunes)

    def _send(self, tunes: Iterable[Tune]) -> None:
        messages = {tune.resource: wire.Settings(**tune.settings) for tune in tunes}  # type: ignore[arg-type]
        if messages:
            task = asyncio.get_running_loop().create_task(self._set_all(messages))
            self._setting.add(task)
            task.add_done_callback(self._setting.discard)

    async def _set_all(self, messages: Mapping[int, wire.Message]) -> None:
        await self._io_nodes.ask_each(messages, wire.Done, _was_set)

    def _put_back(self) -> None:
        """While nothing is tuned, I/O nodes have the site's settings."""
        defaults = {p.name: p.default for p in self.parameters}
        self._send(
            Tune(resource=number, settings=defaults)
            for council in self.councils
            for number, has in council.has.items()
            if has and has != defaults
        )


@contextmanager
def _isolated(what: str) -> Iterator[None]:
    """Log exceptions of the Council instead of raising them: jobs do not depend on it."""
    try:
        yield
    except Exception:
        log.exception("the Council failed in %s", what)


def _was_set(number: int, answer: Any) -> None:
    if not isinstance(answer, wire.Done):
        why = answer.error if isinstance(answer, wire.Failure) else reason(answer)
        log.warning("I/O node %d is not tuned: %s", number, why)


def _check(section: TuningSection, parameters: Iterable[Any], settings: wire.Settings) -> None:
    """Refuse to tune what no I/O node would use."""
    names = {p.name for p in parameters}
    schedulers = [settings.scheduler or "fifo"]
    if "scheduler" in names:
        schedulers += section.values.get("scheduler", ["twins-busy"])
    if "window" in names and not any(name.startswith("twins") for name in schedulers):
        raise InputError(
            f"the window is one of twins, and I/O nodes have {schedulers[0]}; "
            "give --scheduler twins, or leave window out of tuning.tune"
        )
