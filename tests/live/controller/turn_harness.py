"""A turn service without sockets, on a clock that the test moves."""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.config import Setting, load
from penstock.identities import FileSystemId
from penstock.identities import io_nodes as numbered
from penstock.learn.observations import ObservedPhase
from penstock.live.controller.io_node_map import IoNodePath
from penstock.live.controller.io_node_weights import OutOfTurn
from penstock.live.controller.job_table import JobEntry
from penstock.live.controller.policy_watch import Watch, unwatched
from penstock.live.controller.turn_service import TurnService
from penstock.live.protocol import messages
from penstock.live.protocol.job_record import JobRecord
from penstock.live.store import Knowledge
from penstock.model import Assign, FileSystem, Job

Sent = list[tuple[str, str, int]]
"""The job, kind and phase number of messages."""


class TurnHarness:
    """A turn service in mode enforce, the messages that it sent, its weights, what was learnt."""

    def __init__(
        self,
        policy: str = "exclusive-fcfs",
        *,
        lease: float = 2.0,
        max_wait: float = 30.0,
        mode: str = "enforce",
        scope: str = "file-system",
        file_systems: tuple[FileSystem, ...] = (),
        allocation: str = "own",
        watch: Watch = unwatched,
        more: Sequence[str] = (),
    ) -> None:
        settings = [
            f"sharing.policy={policy}",
            f"sharing.scope={scope}",
            f"allocation.policy={allocation}",
            f"live.mode={mode}",
            f"live.lease={lease} s",
            f"live.max-wait={max_wait} s",
            *more,
        ]
        self.now = 1000.0
        self.jobs: dict[str, JobEntry] = {}
        self.messages: list[tuple[str, messages.Message]] = []
        self.weights: dict[str, float] = {}
        self.out_of_turn: OutOfTurn = {}
        self.io_nodes: tuple[int, ...] = (0,)
        self.io_nodes_of: dict[str, tuple[int, ...]] = {}  # of jobs that have others
        self.maps = 0
        self.learnt: list[tuple[str, int, ObservedPhase]] = []
        self.known: dict[str, Knowledge] = {}  # by executable
        self.assigned: list[Assign] = []
        self.released: list[str] = []
        self.turn_service = TurnService(
            load(None, [Setting.parse(text) for text in settings]).config,
            io_nodes=4,
            file_systems=file_systems,
            send=lambda job, message: self.messages.append((job, message)),
            set_weights=self._set_weights,
            path=lambda id: IoNodePath(
                numbered(self.io_nodes_of.get(id, self.io_nodes)), self.maps
            ),
            assign=self.assigned.append,
            release=self.released.append,
            learn=self._learn,
            recall=lambda job: self.known.get(job.begin.executable),
            clock=lambda: self.now,
            watch=watch,
        )

    def _set_weights(self, weights: Mapping[str, float], out_of_turn: OutOfTurn) -> None:
        self.weights.update(weights)
        self.out_of_turn = out_of_turn

    def _learn(self, job: Job, count: int, phase: ObservedPhase) -> None:
        self.learnt.append((job.id, count, phase))
        known = self.known.get(job.executable, Knowledge())
        self.known[job.executable] = known.plus(count, phase, self.now)

    def start(
        self,
        id: str,
        team: str | None = None,
        user: str = "ann",
        knowledge: Knowledge | None = None,
        *,
        reconnected: bool = False,
        hints: messages.Hints = messages.Hints(),  # noqa: B008 - frozen
    ) -> JobEntry:
        begin = messages.BeginJob(
            name=id, pid=1, command=["x"], user=user, protocol=2, team=team, hints=hints
        )
        job = self.jobs[id] = JobEntry(id=id, serial=1, begin=begin, began=self.now, since=self.now)
        job.reconnected = self.now if reconnected else None
        self.turn_service.started(job, knowledge)
        return job

    def record(self, id: str) -> JobRecord:
        return self.turn_service.describe(self.jobs[id].record(self.now))

    def begin(self, job: JobEntry, phase: int, *file_systems: int) -> Sent:
        """A phase begins, or comes to use more file systems."""
        used = [FileSystemId(each) for each in file_systems] or None
        self.turn_service.phase_began(job, messages.PhaseBegan(phase=phase, file_systems=used))
        return self.take()

    def turns_sent(self) -> list[tuple[str, list[FileSystemId] | None]]:
        """Return the turns sent since the last call, with their file systems; none: a Hold."""
        turns = [
            (job, message.file_systems if isinstance(message, messages.Turn) else [])
            for job, message in self.messages
            if isinstance(message, messages.Turn | messages.Hold)
        ]
        self.messages.clear()
        return turns

    def end(self, job: JobEntry, phase: int, moved: int = 10, waited: float = 0.0) -> Sent:
        ended = messages.PhaseEnded(phase=phase, bytes=moved, seconds=1.0, waited=waited)
        self.turn_service.phase_ended(job, ended)
        return self.take()

    def wait(self, seconds: float, *, alive: bool = True) -> Sent:
        """Let time pass, with or without a word of the jobs' agents, and end waits."""
        self.now += seconds
        for job in self.jobs.values() if alive else ():
            self.turn_service.mark_alive(job)
        self.turn_service.end_waits()
        return self.take()

    def take(self) -> Sent:
        """Return the messages since the last call."""
        sent: list[Any] = self.messages.copy()
        self.messages.clear()
        return [(job, type(message).__name__, message.phase) for job, message in sent]
