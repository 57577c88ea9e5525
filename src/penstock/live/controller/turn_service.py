"""Gives turns to a deployment's jobs: the clock and the messages around `Turns`.

In modes observe and advise a job never waits, and its record shows what it would have waited.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import msgspec

from penstock.config import Config
from penstock.config.sections import MODES
from penstock.core.explorer import EXPLORE
from penstock.core.ledger import knows
from penstock.errors import InputError
from penstock.identities import FileSystemId
from penstock.learn.observations import ObservedPhase
from penstock.live.controller.arbitration import Allocations, with_arbitration
from penstock.live.controller.core_inputs import policy_job, record_header
from penstock.live.controller.file_system_turns import FileSystemTurns, waits_on
from penstock.live.controller.fresh_knowledge import FreshKnowledge, Recall
from penstock.live.controller.gate_slices import GateSlicer
from penstock.live.controller.io_node_map import IoNodePath, same_count
from penstock.live.controller.io_node_weights import OutOfTurn
from penstock.live.controller.job_table import JobEntry
from penstock.live.controller.modes import DEFAULT, Modes
from penstock.live.controller.multi_host_jobs import MultiHostJob, MultiHostJobs
from penstock.live.controller.pace import JobLog
from penstock.live.controller.policy_watch import Watch, failure_text, unwatched
from penstock.live.controller.status import TurnWaits, with_progress, with_turn
from penstock.live.controller.turn_state import Phase, PhaseReport, Release, TurnState
from penstock.live.controller.turns import Moment, Turns
from penstock.live.protocol import messages
from penstock.live.protocol.job_record import JobRecord
from penstock.live.protocol.messages import COUNTER_INTERVAL
from penstock.live.protocol.users import canonical_user
from penstock.live.store import Knowledge
from penstock.model import (
    Action,
    Admit,
    Assign,
    FileSystem,
    Hold,
    Job,
    JobId,
    JobsChanged,
    NodeDown,
    NodeUp,
    Pinned,
    ResourceId,
    WakeAt,
)
from penstock.records import RecordWriter

_HEARTBEAT = {mode: messages.Heartbeat(mode=mode) for mode in MODES}
HEARTBEATS = 3
"""Heartbeats per lease."""
SPREAD = 25
"""Parts in which the heartbeats to all jobs are sent."""
SILENCE = 3.0
"""Seconds without a message from a job's agent after which its turn goes to others, at least."""
LATENESS = 0.5
"""Seconds that a message may take."""
log = logging.getLogger("penstock.controller")


class TurnService:
    """Handles what agents report of their phases; tells jobs in mode enforce when to transfer."""

    def __init__(
        self,
        config: Config,
        *,
        io_nodes: int,
        file_systems: Sequence[FileSystem] = (),
        send: Callable[[JobId, messages.Message], None],
        set_weights: Callable[[Mapping[JobId, float], OutOfTurn], None],
        path: Callable[[JobId], IoNodePath],
        assign: Callable[[Assign], None],
        release: Callable[[JobId], None] = lambda _: None,
        learn: Callable[[Job, int, ObservedPhase], None] = lambda *_: None,
        recall: Recall = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        emulated: bool = False,
        watch: Watch = unwatched,
        job_log: JobLog | None = None,
    ) -> None:
        """`send` sends a message to a job, `set_weights` the weights of jobs to the I/O nodes.
        `path` returns the I/O nodes that a job can use now, `learn` takes each phase that is over
        with the number of I/O nodes that its job had from its beginning to its end, `recall`
        returns what is known of a job's application. `release` gives a job all I/O nodes that it
        reaches. `watch` ends decisions that take too long.
        """
        self._watch = watch
        self._clock = clock
        header = record_header(
            config,
            io_nodes,
            epoch=wall_clock() - clock(),
            now=clock(),
            file_systems=file_systems,
            emulated=emulated,
        )
        self.header = with_arbitration(header, config, watch)
        knows(config.sharing.sharing().needs)
        config.live.check_partitions(io_nodes)
        if config.sharing.scope == "io-node" and not io_nodes:
            raise InputError(
                "sharing.scope is 'io-node', and there is no I/O node; give --io-nodes, or "
                "sharing.scope = 'file-system'"
            )
        arbiter = self.header.arbiter(hears_phases=True)
        self.allocations = (
            None if arbiter is None else Allocations(self.header, arbiter, clock, job_log)
        )
        """What was decided on jobs' I/O nodes; None: nothing is."""
        self.turns = Turns(*self.header.manager(self.allocations))
        self.policy = config.sharing.policy
        self._live = config.live
        self.modes = Modes(config.live.mode, config.live.users)
        self.lease, self.longest_wait = config.live.seconds()
        # A silent agent may keep its job waiting until its gate opens by itself: for a lease after
        # the last heartbeat that it received, which may be later than its own last message.
        self.silence = max(SILENCE, self.lease + COUNTER_INTERVAL + LATENESS)
        self.waits = TurnWaits()
        self._failures = 0  # of the sharing policy
        self.weights: dict[JobId, float] = {}
        """The weights that the I/O nodes were sent."""
        self._send, self._set_weights, self._assign = send, set_weights, assign
        self._path, self._learn, self._release = path, learn, release
        self._fresh = (
            None
            if arbiter is None
            else FreshKnowledge(arbiter, self.turns.manager.jobs, self._entry, recall)
        )
        self._by_io_node = config.sharing.scope == "io-node"
        self._out_of_turn: dict[ResourceId, set[JobId]] = {}
        """What the I/O nodes were sent, by I/O node."""
        self._file_systems = FileSystemTurns(file_systems, by_io_node=self._by_io_node)
        # A job that is direct competes with those on the same file system.
        self._slicers = {
            each: GateSlicer(partial(self._direct_weights, each), partial(self._set_gate, each))
            for each in (self._file_systems.ids if self._file_systems.are_several else [None])
        }
        self._multi_host = MultiHostJobs()
        self._jobs: dict[JobId, JobEntry] = {}
        self._serial = 0
        self._record_writer: RecordWriter | None = None

    # Modes.

    def set_mode(self, message: messages.SetMode) -> None:
        """Change a mode; all gates follow at once."""
        user = message.user
        if user is not None and user not in self.modes.users and message.mode != DEFAULT:
            user = canonical_user(user, {job.begin.user for job in self._jobs.values()})
        self.modes.set(message.mode, user)
        log.warning("mode of %s is %s", user or "the site", message.mode)
        self._modes_set()

    def set_site_mode(self, mode: str) -> None:
        """Change the site's mode; if the kill switch is on, it stays on."""
        self.modes.site_mode = mode
        log.warning("mode of the site is %s", mode)
        self._modes_set()

    def set_kill_switch(self, on: bool) -> None:
        """Open every gate, or return to the modes."""
        self.modes.kill_switch = on
        log.warning("the kill switch is %s", "on" if on else "off")
        self._modes_set()

    def open_gates(self) -> None:
        """Open every gate for good: the controller ends."""
        self.modes.kill_switch = True
        self._open_gates()

    def _modes_set(self) -> None:
        if self._record_writer is not None:
            self._record_writer.set_modes(self.modes.site, self.modes.users)
        self._modes_changed()

    @property
    def failures(self) -> int:
        """Times that a policy raised an exception or returned an invalid value."""
        return self._failures + (0 if self.allocations is None else self.allocations.failures)

    def _modes_changed(self) -> None:
        self._open_gates()
        if self.allocations is None:
            return
        changed = tuple(
            replace(job, enforced=not job.enforced)
            for job in self.turns.manager.jobs.values()
            if job.enforced != (self.modes.of(job.user) == "enforce")
        )
        if changed:
            event = JobsChanged(time=self._clock(), jobs=changed)
            self._decide(partial(self.turns.resources_changed, event))
        for job in changed:
            for member in () if job.enforced else self.members(job.id):
                self._release(member)

    def _open_gates(self) -> None:
        """Open or close the gates by the modes."""
        self._send_heartbeats(self._jobs.values())
        for id, state in self.turns.states.items():
            if state.phase is not None:
                state.phase.set_mode(self._mode(id))
        self.turns.note_overlap()
        for id, _ in list(self.turns.waiting()):
            self.turns.observer.phase_changed(id)
        self._update_weights(self.turns.weights())
        users = {id: job.begin.user for id, job in self._jobs.items()}
        self._send_weights(
            {id: 1.0 for id in self.weights if self.modes.of(users[id]) != "enforce"}
        )

    # Jobs and their phases.

    def record(self, writer: RecordWriter) -> None:
        """Record all events from now on."""
        self.turns.record, self._record_writer = writer.write, writer
        if self.allocations is not None:
            writer.late = self.allocations.arbiter.calls.take_late

    def started(self, job: JobEntry, knowledge: Knowledge | None = None) -> None:
        """A job, or another member of it, begins; `knowledge` is of its family."""
        knowledge = knowledge or Knowledge()
        self._jobs[job.id] = job
        if not self._multi_host.join(job.id, job.begin):
            return
        self._serial += 1
        model = policy_job(job.id, self._serial, job.begin, knowledge)
        model = replace(model, host=job.host, partition=self._live.tied(job.begin.partition))
        if self.modes.of(job.begin.user) == "enforce":
            model = replace(model, hints={**model.hints, EXPLORE: 1.0})
        else:
            model = replace(model, enforced=False)
        if job.pinned:
            self.pinned(job)
        volume = job.begin.hints.volume or model.volume
        resumes = job.reconnected is not None
        self._decide(partial(self.turns.started, self._clock(), model, volume, resumes=resumes))
        self.turns.states[job.id].use(same_count(self._paths(job.id)))

    def pinned(self, job: JobEntry) -> None:
        """A job, or a person, asked for its I/O nodes: it keeps them."""
        whole = self._multi_host.find(job.id)
        if whole is not None:
            event = Pinned(time=self._clock(), job=whole.id, resources=job.io_nodes)
            self._decide(partial(self.turns.resources_changed, event))

    def node_up(self, node: messages.Node) -> None:
        """An I/O node serves: on its host, or its user's jobs over TCP."""
        host = "" if node.transport == "unix" else None
        event = NodeUp(
            time=self._clock(),
            resource=node.number,
            user=node.user,
            host=host,
            partitions=self._live.partitions_of(node.number),
        )
        self._decide(partial(self.turns.resources_changed, event))

    def node_down(self, number: int) -> None:
        """An I/O node is gone."""
        event = NodeDown(time=self._clock(), resource=number)
        self._decide(partial(self.turns.resources_changed, event))

    def ended(self, job: JobEntry) -> None:
        """A job, or a member of it, is gone."""
        if self._jobs.pop(job.id, None) is None:
            return
        self.weights.pop(job.id, None)
        whole = self._multi_host.find(job.id)
        if whole is not None and len(whole.members) > 1 and job.id in whole.in_phase:
            waited = self._unreported_wait(whole) or 0.0
            self._end_phase(
                job.id,
                PhaseReport(number=whole.in_phase[job.id], bytes=0, seconds=0.0, waited=waited),
            )
        if (last := self._multi_host.leave(job.id)) is not None:
            if (unreported := self._unreported_wait(last)) is not None:
                self._count_wait(last.id, unreported)
            if self._fresh is not None:
                self._fresh.ended(last.id)
            self._decide(partial(self.turns.ended, self._clock(), last.id))

    def ended_elsewhere(self, job: JobId) -> None:
        """A job of an earlier controller ended: the record has it, though it had no turn here."""
        self._decide(partial(self.turns.ended_elsewhere, self._clock(), job))

    def phase_began(self, job: JobEntry, message: messages.PhaseBegan) -> None:
        """A job asks for its turn, or joins the phase of its other members."""
        whole = self._multi_host.find(job.id)
        if whole is None:
            return
        resumes = whole.resumes(job.id, message.phase)
        if not whole.begin_phase(job.id, message.phase, self._file_systems.used(message)):
            if not self._widen(whole):
                self.turns.file_systems_changed(whole.id, whole.file_systems)
                self._join_phase(job.id, message.phase, whole)
            return
        paths = self._paths(whole.id)
        self.turns.states[whole.id].use(same_count(paths))
        self._decide(
            partial(
                self.turns.phase_began,
                self._clock(),
                whole.id,
                whole.phase,
                message.bytes,
                resources=self._resources(whole, paths),
                file_systems=whole.file_systems,
                io_nodes=_io_nodes(paths),
                resumes=resumes,
                transferring=message.transferring if self._is_enforced(whole.id) else None,
                mode=self._mode(whole.id),
            )
        )
        phase = self.turns.states[whole.id].phase
        if phase is not None:
            phase.paths = paths
        if phase is not None and phase.released:  # it went on transferring: no action says so
            self._update_weights({whole.id: phase.weight})

    def _widen(self, whole: MultiHostJob) -> bool:
        """Ask for turns on file systems that are new to a job's phase, if there are any."""
        phase = self.turns.states[whole.id].phase
        if self._by_io_node or phase is None or set(whole.file_systems) <= set(phase.resources):
            return False
        resources: tuple[ResourceId, ...] = tuple(sorted({*whole.file_systems, *phase.resources}))
        self._decide(partial(self.turns.widen, self._clock(), whole.id, resources))
        return True

    def phase_ended(self, job: JobEntry, message: messages.PhaseEnded) -> None:
        """A job's phase is over, on this host at least."""
        self._end_phase(
            job.id,
            PhaseReport(
                number=message.phase,
                bytes=message.bytes,
                seconds=message.seconds,
                waited=message.waited,
                idle=message.idle,
                small=message.small,
            ),
        )

    def mapped(self, member: JobId) -> None:
        """A job was sent other I/O nodes, and may use them from now on."""
        if (id := self.turn_id(member)) is not None:
            self.turns.io_nodes_changed(id, _io_nodes(self._paths(id)))

    def mark_alive(self, job: JobEntry) -> None:
        """Note that the agent of a job is alive."""
        if state := self._state(job.id):
            state.last_report = self._clock()

    def idle(self, job: JobEntry, message: messages.Idle) -> None:
        """A job does not use its slice, or yields its turn to jobs that wait for it."""
        whole = self._multi_host.find(job.id)
        if whole is None or len(whole.in_phase) != 1:
            return
        if not message.lends:
            on = message.file_system if message.file_system in self._slicers else None
            if on in self._slicers:
                self._slicers[on].idle(whole.id)
        elif self._is_awaited(whole.id) and whole.yield_turn(job.id, message.phase):
            self._send(job.id, messages.Hold(phase=message.phase, turn_lent=True))
            self._decide(partial(self.turns.yield_turn, self._clock(), whole.id))

    def another_member(self, job: JobEntry) -> JobId | None:
        """Return another member of a job, which has its I/O nodes, if there is one."""
        whole = self._multi_host.find(job.id)
        return None if whole is None else min(whole.members - {job.id}, default=None)

    def members(self, id: JobId) -> Iterable[JobId]:
        """Return the members of a job, by the id of its turns."""
        whole = self._multi_host.by_id.get(id)
        return () if whole is None else whole.members

    def turn_id(self, member: JobId) -> JobId | None:
        """Return the id of a member's turns, if it has any."""
        whole = self._multi_host.find(member)
        return None if whole is None else whole.id

    # Job records.

    def progress(self, record: JobRecord) -> JobRecord:
        """Return a job's record with what its phases did so far."""
        state = self._state(record.id)
        return record if state is None else with_progress(record, state)

    def describe(self, record: JobRecord, moment: Moment | None = None) -> JobRecord:
        """Return a job's record with its phases and its turn; `moment` is that of many jobs."""
        id = self.turn_id(record.id)
        if id is None or id not in self.turns.states:
            return record
        record = with_turn(
            self._with_file_systems(record, id),
            self.turns,
            id,
            moment=moment or self.turns.moment(),
            mode=self.modes.of(record.user),
            longest_wait=self.longest_wait,
            now=self._clock(),
            watch=self._watch,
        )
        return record if self.allocations is None else self._with_allocation(record, id)

    def _with_file_systems(self, record: JobRecord, id: JobId) -> JobRecord:
        """Return a job's record with the file systems that its phase uses."""
        used, waits = self.file_systems(id)
        return msgspec.structs.replace(
            record,
            file_systems=list(dict.fromkeys([*record.file_systems, *used])),
            waits_on=waits if record.state == "running" else [],
        )

    def file_systems(self, id: JobId) -> tuple[list[str], list[str]]:
        """Return the file systems that a job's phase uses, and those on which it has no turn."""
        return self._file_systems.of(self._phase(id))

    def on_file_system(self, number: int) -> tuple[list[JobId], list[JobId]]:
        """Return the jobs that transfer on a file system, and those that wait for it."""
        transferring, waiting = list[JobId](), list[JobId]()
        for id, phase in self._file_systems.phases_on(number, self.turns.states):
            jobs = waiting if waits_on(phase, number) else transferring
            jobs.extend(sorted(self.members(id)))
        return transferring, waiting

    def _with_allocation(self, record: JobRecord, id: JobId) -> JobRecord:
        assert self.allocations is not None
        decided = self.allocations.of(id, self.turns.manager.jobs[id], self._clock())
        would = None if decided is None or record.mode == "enforce" else decided.io_nodes
        return msgspec.structs.replace(record, allocation=decided, would_have=would)

    # Background work.

    async def run(self) -> None:
        """Send heartbeats, and end waits that are too long, until cancelled."""
        while True:
            began = self._clock()
            jobs = list(self._jobs.values())
            # A thousand heartbeats at once would delay turns for as long as sending them takes.
            for k in range(SPREAD):
                self._send_heartbeats(jobs[k::SPREAD])
                await asyncio.sleep(self.lease / HEARTBEATS / SPREAD)
            if self._clock() - began > self.lease:  # this process was stopped: it heard no job
                self.turns.excuse_silence(self._clock())
            self.end_waits()

    def end_waits(self) -> None:
        """Release phases that waited too long, and take the turns of silent jobs."""
        now = self._clock()
        self._decide(partial(self.turns.release_overdue, now, self.longest_wait))
        self._decide(partial(self.turns.suspend_silent, now, self.silence))

    async def run_slices(self) -> None:
        """Keep the shares of direct jobs, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for slicer in self._slicers.values():
                tasks.create_task(slicer.run())

    # From decisions to messages.

    def _decide(self, decide: Callable[[], Sequence[Action | Release]]) -> None:
        began = self._clock()
        if self.allocations is not None:
            self.allocations.seconds, self.allocations.decides = 0.0, False
        try:
            with self._watch():
                actions = decide()
        except BaseException as error:  # a policy may raise anything, and no job may wait for it
            self._failures += 1
            text = failure_text(self._watch, self.turns.manager.rule.policy, error)
            log.error("%s failed; waiting jobs go on without a turn\n%s", self._at_fault(0.0), text)
            actions = self.turns.release_all(self._clock())
            for id in filter(self._has_other_turns, self.turns.states):
                self._tell_turn(id)
        if (seconds := self._clock() - began) > self.lease / HEARTBEATS:
            log.warning(
                "slow policy: a decision of %s took %.2g s; all gates open after %g s without a "
                "heartbeat, and none is sent meanwhile",
                *(self._at_fault(seconds), seconds, self.lease),
            )
        for slicer in self._slicers.values():
            slicer.changed()
        weights: dict[JobId, float] = {}
        for action in actions:
            match action:
                case Admit(job=id):
                    if self._begins_turn(id) and id not in weights:
                        self._tell_turn(id)
                    phase = self._phase(id)
                    weights[id] = action.weight if phase is None else phase.weight
                case Release(job=id, weight=weight):
                    weights[id] = weight
                    self._tell_release(action)
                case Hold(job=id):
                    self._tell_hold(id)
                case Assign():
                    self._give(action)
                case WakeAt(time=due):
                    delay = max(due - self._clock(), 0.0)
                    asyncio.get_running_loop().call_later(delay, self._wake)
        self._update_weights(weights)

    def _begins_turn(self, id: JobId) -> bool:
        """Tell whether the last event gave a job a turn that it does not know of yet."""
        phase = self._phase(id)
        if self._by_io_node or phase is None:
            return self.turns.begins_turn(id)
        return phase.reported != phase.turns

    def _has_other_turns(self, id: JobId) -> bool:
        """Tell whether a job transfers, and knows of turns on other file systems than it has."""
        phase = self._phase(id)
        return phase is not None and bool(phase.turns and phase.reported) and self._begins_turn(id)

    def _tell_turn(self, id: JobId) -> None:
        """Tell a job on which file systems it has its turn."""
        phase = self._phase(id)
        weight = 1.0 if phase is None else phase.weight
        on = None if phase is None else self._file_systems.named(phase.turns)
        if phase is not None and not self._by_io_node:
            phase.reported = frozenset(phase.turns)
        self._send_turn(id, messages.Turn(phase=0, weight=weight, file_systems=on))

    def _tell_release(self, release: Release) -> None:
        """Tell a job to transfer without its turn."""
        phase = self._phase(release.job)
        turn = messages.Turn(
            phase=0,
            weight=release.weight,
            overdue=True,
            failed=release.failed,
            file_systems=None if phase is None else self._file_systems.named(phase.resources),
        )
        self._send_turn(release.job, turn)

    def _tell_hold(self, id: JobId) -> None:
        """Tell a job that it waits, or on which file systems alone it may transfer."""
        phase = self._phase(id)
        if phase is not None and phase.is_waiting:
            phase.reported = frozenset()
            self._send_turn(id, messages.Hold(phase=0))
        elif self._has_other_turns(id):
            self._tell_turn(id)

    def _phase(self, id: JobId) -> Phase | None:
        state = self.turns.states.get(id)
        return None if state is None else state.phase

    def _at_fault(self, seconds: float) -> str:
        """Name the policy that failed, or took the larger part of a decision's seconds."""
        allocations = self.allocations
        if allocations is not None and (
            allocations.decides or allocations.seconds > seconds / 2 > 0
        ):
            return allocations.name
        return f"sharing policy {self.policy}"

    def _give(self, assign: Assign) -> None:
        """Give all members of a job its I/O nodes."""
        for member in self.members(assign.job):
            self._assign(replace(assign, job=member))

    def _wake(self) -> None:
        self._decide(partial(self.turns.woke, self._clock()))

    def _send_turn(self, id: JobId, message: messages.Turn | messages.Hold) -> None:
        """Send a message to the members in a job's phase, each with its own phase number."""
        for member, number in self._multi_host.by_id[id].in_phase.items():
            self._send(member, msgspec.structs.replace(message, phase=number))
        if isinstance(message, messages.Turn):
            opened = self._slicers if message.file_systems is None else message.file_systems
            for each in opened:
                self._slicers[each].opened(id)

    def _join_phase(self, member: JobId, number: int, whole: MultiHostJob) -> None:
        phase = self.turns.states[whole.id].phase
        if phase is not None and phase.is_waiting:
            self._send(member, messages.Hold(phase=number))
        else:
            weight = 1.0 if phase is None else phase.weight
            on = None if phase is None else self._file_systems.named(phase.turns or phase.resources)
            self._send(member, messages.Turn(phase=number, weight=weight, file_systems=on))

    def _end_phase(self, member: JobId, report: PhaseReport) -> None:
        whole = self._multi_host.find(member)
        ended = None if whole is None else whole.end_phase(member, report, self._clock())
        if whole is not None and ended is not None:
            self._count_wait(whole.id, ended.waited)
            changed = self._observe(whole.id, ended)
            self._decide(partial(self.turns.phase_ended, self._clock(), whole.id, ended))
            if changed:
                event = JobsChanged(time=self._clock(), jobs=changed)
                self._decide(partial(self.turns.resources_changed, event))

    def _observe(self, id: JobId, report: PhaseReport) -> tuple[Job, ...]:
        """Learn from a phase that is over, if its job had the same I/O nodes all the time.

        Return the jobs of which more is known now.
        """
        state = self.turns.states[id]
        phase = state.phase
        if phase is None or phase.number != report.number or report.small:
            return ()
        count = same_count(phase.paths)
        if count is None or phase.paths != self._paths(id):
            return ()
        observation = state.observation(phase, report)
        self._learn(self.turns.manager.jobs[id], count, observation)
        return () if self._fresh is None else self._fresh.observed(id, count, observation)

    def _entry(self, id: JobId) -> JobEntry:
        """Return one of a job's members."""
        return self._jobs[min(self._multi_host.by_id[id].members)]

    def _resources(
        self, whole: MultiHostJob, paths: Mapping[JobId, IoNodePath]
    ) -> tuple[ResourceId, ...]:
        """Return what the phase of a job on these paths takes turns on."""
        if not self._by_io_node:
            return whole.file_systems
        return tuple(sorted(_io_nodes(paths)))

    def _paths(self, id: JobId) -> dict[JobId, IoNodePath]:
        # A member that is ending is no longer on any path.
        return {member: self._path(member) for member in self.members(id) if member in self._jobs}

    def _state(self, member: JobId) -> TurnState | None:
        id = self.turn_id(member)
        return None if id is None else self.turns.states.get(id)

    def _mode(self, id: JobId) -> str:
        return self.modes.of(self.turns.manager.jobs[id].user)

    def _is_enforced(self, id: JobId) -> bool:
        return self._mode(id) == "enforce"

    def _is_awaited(self, id: JobId) -> bool:
        """Tell whether another job waits for the turn that this one has."""
        if not self.turns.has_turn(id):
            return False
        queues = self.turns.manager.queue_index()
        return any(
            self._is_enforced(other) and queues.is_ahead(id, other)
            for other, _ in self.turns.waiting()
        )

    def _unreported_wait(self, whole: MultiHostJob) -> float | None:
        """Return the wait of a phase whose end will not be reported, if there is one."""
        state = self.turns.states[whole.id]
        phase = state.phase or state.suspended
        return None if phase is None else phase.waited_until(self._clock())

    def _count_wait(self, id: JobId, seconds: float) -> None:
        """Count the wait of a phase that is over, if its job is made to wait."""
        if self._is_enforced(id):
            # The agent says so; no phase can wait longer than this.
            seconds = min(max(seconds, 0.0), 2 * self.longest_wait + self.lease)
            self.waits.add(seconds, self.turns.manager.jobs[id].user)

    def _send_heartbeats(self, jobs: Iterable[JobEntry]) -> None:
        for job in jobs:
            if job.begin.protocol >= 2:
                self._send(job.id, _HEARTBEAT[self.modes.of(job.begin.user)])

    def _direct_weights(self, on: FileSystemId | None) -> dict[JobId, float]:
        return {
            id: weight
            for id, weight in self.turns.weights(on).items()
            # Agents keep the gate of a phase without a turn open.
            if self.turns.has_turn(id, on)
            and self._is_enforced(id)
            and same_count(self._paths(id)) == 0
        }

    def _set_gate(self, on: FileSystemId | None, id: JobId, open_: bool) -> None:
        for member, number in self._multi_host.by_id[id].in_phase.items():
            self._send(member, messages.Slice(phase=number, open=open_, file_system=on))

    def _update_weights(self, weights: Mapping[JobId, float]) -> None:
        """Divide jobs' weights among their members, and send those that changed.

        An I/O node serves all file systems: a job on one is not in the way of those on others.
        """
        if self._file_systems.are_several:
            weights = self.turns.relative_weights()
        by_member: dict[JobId, float] = {}
        for id, weight in weights.items():
            members = self._multi_host.by_id[id].members
            each = weight / len(members) if self._is_enforced(id) else 1.0
            by_member |= dict.fromkeys(members, each)
        self._send_weights(by_member)

    def _send_weights(self, weights: Mapping[JobId, float]) -> None:
        """Send the weights of all jobs to the I/O nodes, if one changed: they keep no others."""
        changed = {job: w for job, w in weights.items() if self.weights.get(job, 1.0) != w}
        out_of_turn = self._find_out_of_turn() if self._by_io_node else {}
        if changed or out_of_turn != self._out_of_turn:
            self.weights |= changed
            self._out_of_turn = out_of_turn
            self._set_weights(dict(self.weights), out_of_turn)

    def _find_out_of_turn(self) -> dict[ResourceId, set[JobId]]:
        """Return the members, by I/O node, that have there what others leave."""
        members = {
            io_node: {member for id in jobs if self._is_enforced(id) for member in self.members(id)}
            for io_node, jobs in self.turns.out_of_turn().items()
        }
        return {io_node: jobs for io_node, jobs in members.items() if jobs}


def _io_nodes(paths: Mapping[JobId, IoNodePath]) -> set[ResourceId]:
    return {number for path in paths.values() for number in path.numbers}
