"""The Council of a running deployment: asks its I/O nodes, sets them, keeps what was learnt.

Every interval all I/O nodes are asked what they saw; what the Councils choose is set where the
site's mode is enforce. What was learnt is saved every few seconds, one file a policy, and the next
controller goes on from there; a file that is damaged is put aside, never overwritten. The model of
access patterns is read again when its file changes.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from penstock.config.tuning import TuningSection
from penstock.core.council import Council, Experience
from penstock.errors import InputError
from penstock.files import reason, replacing
from penstock.learn.detection.model import Model, load, shipped
from penstock.live.controller.io_nodes import IoNodes
from penstock.live.protocol import messages as wire
from penstock.live.protocol.io_node_record import NodeTuning, TuningStatus
from penstock.model import Tune, Value

FORMAT = 1
AT_A_TIME, APART = 64, 0.01
"""I/O nodes that are asked together; seconds after which the next are, whoever has not answered."""
SAVED_EVERY = 10.0
"""Seconds between two checkpoints of what was learnt."""

log = logging.getLogger("penstock.controller")


class Checkpoint:
    """What a policy has learnt, in a file of its own."""

    def __init__(self, folder: Path, policy: str) -> None:
        file, _, name = policy.rpartition(":")
        self.path = folder / f"{Path(file).stem}-{name}.json" if file else folder / f"{name}.json"
        self._policy = policy

    def read(self, experience: Experience) -> None:
        """Go on from the file if there is one; a damaged one is put aside, and said so."""
        if not self.path.is_file():
            return
        try:
            told = msgspec.json.decode(self.path.read_bytes())
            if not isinstance(told, dict) or told.get("format") != FORMAT:
                raise InputError("it is of another version")
            experience.restore(told["learned"])
        except Exception as error:  # a stranger's tuner may raise anything
            aside = self._aside()
            log.warning(
                "%s cannot be read (%s): put aside as %s", self.path, reason(error), aside.name
            )
            try:
                self.path.rename(aside)
            except OSError as why:
                raise InputError(f"{self.path} is damaged and cannot be put aside: {why}") from why

    def write(self, learned: Mapping[str, Any]) -> None:
        """Save it, whole or not at all."""
        self.path.parent.mkdir(exist_ok=True)
        told = {"format": FORMAT, "policy": self._policy, "saved": time.time(), "learned": learned}
        with replacing(self.path) as unfinished:
            unfinished.write_bytes(msgspec.json.encode(told))

    def _aside(self) -> Path:
        taken = (self.path.with_suffix(f".damaged-{k}") for k in range(1, 1000))
        return next(path for path in taken if not path.exists())


class ModelFile:
    """The model in use: the shipped one, or a file that may be replaced while it is."""

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        self._changed = self._stamp()
        self.model = shipped() if self._path is None else load(self._path)

    def refresh(self) -> Model | None:
        """Return the model if its file has changed and can be read, else None."""
        if self._path is None or (stamp := self._stamp()) == self._changed:
            return None
        self._changed = stamp
        try:
            self.model = load(self._path)
        except InputError as error:
            log.warning("the model in use stays: %s", error)
            return None
        log.info("patterns are detected by %s from now on", self._path)
        return self.model

    def _stamp(self) -> tuple[int, int]:
        try:
            found = self._path.stat() if self._path is not None else None
        except OSError:
            found = None
        return (0, 0) if found is None else (found.st_mtime_ns, found.st_ino)


class Tuning:
    """Tunes a io_nodes's I/O nodes; `enforced` says whether they are to be set at all."""

    def __init__(
        self,
        section: TuningSection,
        settings: wire.Settings,
        io_nodes: IoNodes,
        folder: Path,
        *,
        enforced: Callable[[], bool],
    ) -> None:
        self.section = section
        self.parameters = section.parameters(_given(settings))
        _check(section, self.parameters, settings)
        self._io_nodes = io_nodes
        self._enforced = enforced
        self._interval, self._deadline = section.seconds()
        self._model = ModelFile(section.model)
        self.experience = Experience(
            {p.name: section.tuner(seed=k) for k, p in enumerate(self.parameters)}
        )
        self._checkpoint = Checkpoint(folder, section.policy)
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
        """Called when something was chosen."""

    def up(self, number: int) -> None:
        """An I/O node serves."""
        with _minor("taking an I/O node in"):
            self._set([self._of(number).joined(number)])

    def down(self, number: int) -> None:
        """An I/O node is gone."""
        with _minor("letting an I/O node go"):
            self._of(number).left(number)

    async def run(self) -> None:
        """Go on until cancelled; what was learnt by then is saved by `save`."""
        saved = due = time.monotonic()
        faults = 0
        while True:
            due = max(due + self._interval, time.monotonic())
            await asyncio.sleep(due - time.monotonic())
            with _minor("an interval"):
                await self._round()
                if (model := await asyncio.to_thread(self._model.refresh)) is not None:
                    for council in self.councils:
                        council.detector = model
            if self.experience.faults > faults:
                faults = self.experience.faults
                log.warning("%s (%d so far)", self.experience.fault, faults)
            if time.monotonic() - saved >= SAVED_EVERY:
                saved = time.monotonic()
                await self.save()

    async def save(self) -> None:
        """Save what was learnt; a full disk costs the newest of it only."""
        with _minor("saving what was learnt"):
            try:
                await asyncio.to_thread(self._checkpoint.write, self.experience.learned())
            except (OSError, InputError) as error:
                log.warning("what was learnt is not saved: %s", reason(error))

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
        council = self._of(number)
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

    def _of(self, number: int) -> Council:
        return self.councils[number // self._size]

    def _applied(self) -> bool:
        return self._enforced() and not self.section.dry_run

    async def _round(self) -> None:
        """Ask all, let those that do not answer in time be, and choose."""
        serving = [n for n in self._io_nodes.nodes if n.node is not None]
        for io_node in serving:
            if io_node.link is None and not io_node.remote:
                await self._io_nodes.link(io_node)
        until = time.monotonic() + self._deadline
        numbers = [io_node.number for io_node in serving]
        groups = []
        # Some at a time: else the last report would wait until all others have been looked at.
        for k in range(0, len(numbers), AT_A_TIME):
            asked = dict.fromkeys(numbers[k : k + AT_A_TIME], wire.GetObservation())
            within = max(until - time.monotonic(), 0.001)
            asking = self._io_nodes.ask_each(asked, wire.NodeObservation, self._heard, within)
            groups.append(asyncio.create_task(asking))
            await asyncio.wait(groups[-1:], timeout=APART)  # who is slow keeps no others waiting
        await asyncio.gather(*groups)
        self.experience.teach()
        for council in self.councils:
            self._set(council.choose())
        self.watch()
        if not self._applied():
            self._put_back()

    def _heard(self, number: int, told: Any) -> None:
        if isinstance(told, wire.NodeObservation):
            with _minor("a report"), suppress(ConnectionError):  # as one that did not come
                self._of(number).observed(number, told.to_observation(), told.settings)

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
        """While nothing is set, I/O nodes have what the site gave them."""
        defaults = {p.name: p.default for p in self.parameters}
        self._send(
            Tune(resource=number, settings=defaults)
            for council in self.councils
            for number, has in council.has.items()
            if has and has != defaults
        )


@contextmanager
def _minor(what: str) -> Iterator[None]:
    """Let no fault out of the Council: jobs do not depend on it."""
    try:
        yield
    except Exception:
        log.exception("the Council passed over %s", what)


def _was_set(number: int, told: Any) -> None:
    if not isinstance(told, wire.Done):
        why = told.error if isinstance(told, wire.Failure) else reason(told)
        log.warning("I/O node %d is not tuned: %s", number, why)


def _given(settings: wire.Settings) -> dict[str, Value]:
    told = msgspec.structs.asdict(settings)
    return {name: value for name, value in told.items() if value is not None}


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
