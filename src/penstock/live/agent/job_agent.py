"""The agent of one running job: reports its phases to the controller, and applies the answers.

Runs in `penstock run`, or once per job in the agent of a node. Where turns are enforced, the job's
gate is closed between phases. A call that waits there wakes the agent, which requests a turn and
opens the gate once it is granted. A gate stays closed for at most a lease after the controller's
last heartbeat: if the controller or this process dies, it opens by itself.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from dataclasses import dataclass

import msgspec

from penstock.errors import InputError
from penstock.files import reason
from penstock.identities import FileSystemId
from penstock.learn.phases import Began, Ended
from penstock.live.agent.phase_sampler import PhaseSampler
from penstock.live.agent.phase_turn import PhaseTurn
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.exit_spool import ExitSpool
from penstock.live.protocol.messages import COUNTER_INTERVAL
from penstock.live.protocol.seal import TamperedError
from penstock.live.protocol.shared_page import SharedPages

log = logging.getLogger("penstock.agent")
_DISTANT_FUTURE = 1e6
"""Seconds ahead at which any phase has ended."""
_FROM_CONTROLLER = (
    messages.NodeMap
    | messages.Turn
    | messages.Hold
    | messages.Slice
    | messages.Heartbeat
    | messages.Done
    | messages.Failure
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Times of an agent, in seconds."""

    sample_interval: float = 0.05  # while the job does not wake the agent
    least_interval: float = 0.005  # however often it does
    counter_interval: float = COUNTER_INTERVAL
    lend_after: float = 1.0  # without a call, a marked phase offers its turn to other jobs
    reconnect_interval: float = 0.5
    exit_timeout: float = 2.0  # for the controller to confirm the exit of the job


def begin_job(
    controller: ControlConnection, begin: messages.BeginJob, uid: int
) -> messages.JobAccepted:
    """Ask for a job of the user `uid`.

    What would run as code in the job (the emulator's) is taken from a controller of that user, or
    of root, on this host.
    """
    accepted = controller.ask(begin, messages.JobAccepted)
    if controller.uid in (0, uid):
        return accepted
    return msgspec.structs.replace(accepted, environment={}, preload=[], above=[])


class JobAgent:
    """The agent of a job; `connect` opens a new connection after the controller has gone.

    Writes the job's exit to `exit_spool` if no controller confirms it.
    """

    def __init__(
        self,
        controller: ControlConnection,
        begin: messages.BeginJob,
        accepted: messages.JobAccepted,
        pages: SharedPages,
        connect: Callable[[], ControlConnection] | None = None,
        *,
        uid: int | None = None,
        exit_spool: ExitSpool | None = None,
        limits: Limits = Limits(),
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """`uid` is the user of the job; None: this process's own."""
        self.id = accepted.job
        self._uid = os.getuid() if uid is None else uid
        self.advice = ""
        """The controller's advice at the end of the job, in mode "advise"."""
        self._begin = begin
        self._pages = pages
        self._connect = connect
        self._exit_spool = exit_spool
        self._limits = limits
        self._clock = clock
        self._wall_clock = wall_clock
        self._began = wall_clock()
        self._controller: ControlConnection | None = controller
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._exit_confirmed = threading.Event()
        self._exit: messages.JobExit | None = None
        self._maps = 0  # applied so far: tells the controller which map is in force
        self._fail_opens = dict.fromkeys(("lapses", "overdue", "policy_failed"), 0)
        """Phases that transferred without a turn, by cause."""
        self._waited = 0.0  # seconds, for turns
        self._phases = 0
        self._phase: PhaseTurn | None = None
        self._sampler = PhaseSampler(pages)
        self._implausible_logged = False
        self._tampered = 0  # connections that ended with a message that was changed on its way
        self._offered = 0.0  # when the turn was last offered to other jobs
        self._apply(clock(), accepted)
        self._threads = [
            threading.Thread(target=target, name=f"penstock-{name}", daemon=True)
            for name, target in (("listen", self._listen), ("sample", self._sample_until_stopped))
        ]
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:  # interrupted: a running thread would outlive the pages
            self._stop()
            raise

    def end(self, status: int) -> dict[str, int]:
        """Report the exit of the job to the controller; return the last counters."""
        with self._lock:
            now = self._clock()
            self._sample(now)
            self._sample(now, ahead=_DISTANT_FUTURE)  # end a phase that is still open
            counters = self.counters()
            usage = self.usage()
            self._exit = messages.JobExit(counters=counters, status=status, usage=usage)
            self._send(self._exit)
            controller = self._controller
        if controller is None or not self._exit_confirmed.wait(self._limits.exit_timeout):
            self._spool_exit(counters, usage, status)
        self._stop()
        return counters

    def _stop(self) -> None:
        self._stopped.set()
        self._pages.wake()
        with self._lock:
            self._disconnect()
        for thread in self._threads:
            with suppress(RuntimeError):  # it was never started
                thread.join()

    def _spool_exit(self, counters: dict[str, int], usage: messages.Usage, status: int) -> None:
        if self._exit_spool is None:
            return
        unreported = messages.UnreportedExit(
            job=self.id,
            begin=self._begin,
            began=self._began,
            ended=self._wall_clock(),
            counters=counters,
            status=status,
            usage=usage,
        )
        try:
            self._exit_spool.write(unreported)
        except OSError as error:
            log.warning("the exit of job %s is lost: %s", self.id, reason(error))

    def counters(self) -> dict[str, int]:
        """Return the job's counters, summed over threads, and those of its agent."""
        own = {
            "maps": self._maps,
            "phases": self._phases,
            "turn_waited": round(self._waited * 1e9),
            "attached": self._pages.attached,
            "concurrent_calls": self._sampler.concurrent_calls,
            "implausible": self._implausible(),
            "tampered": self._tampered,
        }
        return self._pages.totals() | own | self._fail_opens

    def _implausible(self) -> int:
        """Return the number of counters that the job wrote impossible values into; log it once."""
        count = self._pages.implausible()
        if count and not self._implausible_logged:
            self._implausible_logged = True
            log.warning(
                "job %s wrote impossible values into %d of its counters; they are bounded",
                self.id,
                count,
            )
        return count

    def usage(self) -> messages.Usage:
        """Return where the job's data went."""
        by_node = self._pages.bytes_by_io_node()
        return messages.Usage(
            io_nodes={str(number): moved for number, moved in by_node.items()},
            file_systems={
                str(number): moved for number, moved in self._pages.bytes_by_file_system().items()
            },
            directories=self._pages.directories_elsewhere(),
        )

    def _report_counters(self) -> None:
        self._send(messages.JobCounters(counters=self.counters(), usage=self.usage()))

    def _apply(self, now: float, accepted: messages.JobAccepted) -> None:
        """Apply what the controller answered when the job began, or came back."""
        self._mode, self._lease = accepted.mode, accepted.lease
        self._max_wait = accepted.longest_wait
        self._last_heartbeat = now
        self._dirty_window = accepted.dirty_window
        self._assign(accepted.nodes, accepted.stripe)
        self._limit_dirty_data()
        self._pages.open_gate() if self._mode != "enforce" else self._close_gate()

    def _assign(self, nodes: list[messages.Node], stripe: int) -> None:
        """Give the job its I/O nodes.

        Those that carry its data are named by a controller of its user or of root, or by that of
        another host, which has proven a key: another user of this host has no part in its data.
        """
        if self._controller is None or self._controller.uid not in (None, 0, self._uid):
            nodes = [node for node in nodes if node.transport == "unix"]
        self._pages.assign(nodes, stripe=stripe)

    def _limit_dirty_data(self) -> None:
        self._pages.limit_dirty_data(self._dirty_window if self._mode == "enforce" else 0)

    def _close_gate(self, file_systems: Collection[FileSystemId] | None = None) -> None:
        """Close the gates of some file systems, or of all, until the lease ends."""
        seconds = self._last_heartbeat + self._lease - self._clock()
        self._pages.close_gate(seconds, file_systems)

    def _closed_gates(self, phase: PhaseTurn | None) -> set[FileSystemId]:
        """Return the file systems whose gates are closed while turns are enforced."""
        return set(self._pages.file_systems) - (set() if phase is None else phase.open_gates)

    # From the job to the controller.

    def _sample_until_stopped(self) -> None:
        reported = self._clock()
        while not self._stopped.is_set():
            wakeups = self._pages.wakeups
            now = self._clock()
            with self._lock:
                self._sample(now)
                if now - reported >= self._limits.counter_interval:
                    reported = now
                    self._report_counters()
            due = self._sampler.next_sample(now, self._limits.sample_interval)
            # The job counts its wakeups itself, and may count for ever.
            least = min(due, self._limits.least_interval)
            self._stopped.wait(least)
            self._pages.await_wakeup(wakeups, due - least)

    def _sample(self, now: float, ahead: float = 0.0) -> None:
        for change in self._sampler.sample(now + ahead):
            # The phase that ended may have passed a gate that had opened by itself.
            self._end_expired_wait(now)
            if isinstance(change, Began):
                self._begin_phase(now, change.time)
            elif isinstance(change, Ended):
                self._end_phase(now, change)
        self._end_expired_wait(now)
        if self._phase is not None:
            self._follow_file_systems(now, self._phase)
        if self._phase is not None and self._mode == "enforce":
            self._offer_unused_turn(now, self._phase)

    def _follow_file_systems(self, now: float, phase: PhaseTurn) -> None:
        """Request the turn on another file system that the phase uses."""
        every = self._pages.file_systems
        if len(every) == 1 or phase.is_lent:
            return
        # At a closed gate, calls that are not small wait.
        passed = phase.out_of_turn if self._mode == "enforce" else every
        used = self._sampler.waiting_on() | self._sampler.moved_on(passed)
        if not phase.use(now, used):
            return
        if self._controller is None and self._mode == "enforce":
            self._fail_open(now, phase, "lapses")
        self._request_turn(phase)

    def _offer_unused_turn(self, now: float, phase: PhaseTurn) -> None:
        """Offer the turn of a marked phase without calls; request it again at the next call."""
        if phase.is_lent:
            if self._sampler.is_waiting():
                phase.request_again(now, self._sampler.waiting_on())
                self._request_turn(phase)
            return
        finder = self._sampler.finder
        if phase.turn is None or phase.overdue or not finder.marked:
            return
        # A phase that waited for its turn could not make calls before it.
        idle = min(self._sampler.idle_seconds(now), now - max(self._offered, phase.turn))
        if idle >= max(self._limits.lend_after, 2 * finder.gap):
            self._offered = now
            self._send(messages.Idle(phase=phase.number, lends=True))

    def _end_expired_wait(self, now: float) -> None:
        """End a wait if the lease has ended, or the phase has waited for the maximum time."""
        phase = self._phase
        if phase is None or self._mode != "enforce":
            return
        lapsed = now - self._last_heartbeat >= self._lease
        if phase.turn is not None:
            self._end_expired_waits_elsewhere(now, phase, lapsed=lapsed)
            return
        if phase.is_lent:
            if not lapsed or self._sampler.idle_seconds(now):
                return
            phase.request_again(now, self._sampler.waiting_on())
        if not phase.is_waiting:
            return
        if lapsed:  # the wait ended when the gate opened, however late this process notices
            opened = max(self._last_heartbeat + self._lease, phase.waiting_since)
            self._fail_open(min(opened, now), phase, "lapses")
        elif phase.waited + now - phase.waiting_since >= self._max_wait:
            self._fail_open(now, phase, "overdue")

    def _end_expired_waits_elsewhere(self, now: float, phase: PhaseTurn, *, lapsed: bool) -> None:
        """End waits on single file systems, of a phase that has its turn on another one."""
        for file_system, since in phase.waits_on().items():
            if lapsed:
                self._fail_open(now, phase, "lapses", {file_system})
            elif now - since >= self._max_wait:
                self._fail_open(now, phase, "overdue", {file_system})

    def _fail_open(
        self,
        now: float,
        phase: PhaseTurn,
        cause: str,
        file_systems: Collection[FileSystemId] | None = None,
    ) -> None:
        """Let a phase transfer without a turn, on some file systems or all."""
        if phase.turn is None:
            phase.start(now)
        self._fail_opens[cause] += 1
        opened = self._pages.file_systems if file_systems is None else file_systems
        phase.out_of_turn.update(opened)
        self._pages.open_gate(opened)

    def _begin_phase(self, now: float, began: float) -> None:
        """Request a turn for a phase, which is noticed after it `began`."""
        self._phases += 1
        announced = self._sampler.take_announced_bytes()
        self._phase = PhaseTurn(self._phases, min(began, now), now, announced)
        self._phase.use(now, self._sampler.first_file_systems())
        if self._controller is None and self._mode == "enforce":
            self._fail_open(now, self._phase, "lapses")
        self._request_turn(self._phase)

    def _request_turn(self, phase: PhaseTurn, transferring: float | None = None) -> None:
        if not phase.file_systems:  # it is marked, and nothing says yet what it will use
            return
        several = len(self._pages.file_systems) > 1
        self._send(
            messages.PhaseBegan(
                phase=phase.number,
                bytes=phase.bytes,
                transferring=transferring,
                file_systems=sorted(phase.file_systems) if several else None,
            )
        )

    def _end_phase(self, now: float, ended: Ended) -> None:
        phase, self._phase = self._phase, None
        self._sampler.phase_over()
        if phase is None:
            return
        if phase.is_lent:
            self._request_turn(phase)  # the controller accepts the end of a current phase only
        seconds = phase.end(ended.time, enforced=self._mode == "enforce")
        self._waited += phase.waited
        self._send(
            messages.PhaseEnded(
                phase=phase.number,
                bytes=ended.moved,
                seconds=seconds,
                waited=phase.waited,
                idle=max(now - ended.time, 0.0),
                small=ended.small,
            )
        )
        if self._mode == "enforce" and self._controller is not None:
            self._close_gate()

    # From the controller to the job.

    def _listen(self) -> None:
        while not self._stopped.is_set():
            controller = self._controller
            if controller is not None:
                with suppress(OSError):
                    self._receive(controller)
            if self._exit_confirmed.is_set() or self._stopped.is_set() or not self._reconnect():
                return

    def _receive(self, controller: ControlConnection) -> None:
        """Handle what the controller sends, until the connection ends."""
        try:
            while not self._exit_confirmed.is_set():
                self._handle(controller.receive(_FROM_CONTROLLER, None))
        except InputError as error:  # it has sent what cannot be
            log.warning("job %s: %s; the connection to the controller ends", self.id, error)
        except TamperedError as error:
            self._tampered += 1
            log.warning("job %s: %s; the connection to the controller ends", self.id, error)

    def _handle(self, message: object) -> None:
        now = self._clock()
        with self._lock:
            # Once the gate has opened by itself, it is too late to close it again.
            self._end_expired_wait(now)
            match message:
                case messages.Heartbeat(mode=mode):
                    self._renew_lease(now, mode)
                case messages.Turn(phase=number) if self._phase and self._phase.number == number:
                    self._grant_turn(now, self._phase, message)
                case messages.Hold(phase=number) if self._phase and self._phase.number == number:
                    self._revoke_turn(now, self._phase, lend=message.turn_lent)
                case messages.Slice(phase=number) if self._phase and self._phase.number == number:
                    self._switch_slice(self._phase, message)
                case messages.NodeMap(nodes=nodes, stripe=stripe):
                    self._assign(nodes, stripe)
                    self._maps += 1
                    self._report_counters()
                case messages.Done() | messages.Failure() if self._exit is not None:
                    self.advice = message.advice if isinstance(message, messages.Done) else ""
                    self._exit_confirmed.set()

    def _grant_turn(self, now: float, phase: PhaseTurn, turn: messages.Turn) -> None:
        every = set(self._pages.file_systems)
        granted = every if turn.file_systems is None else every & set(turn.file_systems)
        if self._mode != "enforce":
            phase.turns = granted
            if phase.turn is None:
                phase.turn = phase.began  # an observed phase does not wait
            else:
                self._pages.open_gate()
        elif turn.overdue and phase.turn is None:
            self._fail_open(now, phase, "policy_failed" if turn.failed else "overdue", granted)
        else:
            if phase.turn is None:
                phase.start(now)
            lost, phase.turns = phase.turns - granted - phase.out_of_turn, granted
            phase.requested |= dict.fromkeys(lost, now)
            self._pages.open_gate(granted)
            if lost:
                self._close_gate(lost)

    def _revoke_turn(self, now: float, phase: PhaseTurn, *, lend: bool) -> None:
        if self._mode != "enforce" or phase.turn is None:
            return
        if not phase.overdue:
            phase.lend(now) if lend else phase.stop(now)
            self._close_gate()
        elif lost := phase.turns - phase.out_of_turn:
            phase.requested |= dict.fromkeys(lost, now)
            phase.turns.clear()
            self._close_gate(lost)

    def _switch_slice(self, phase: PhaseTurn, slice_: messages.Slice) -> None:
        on = slice_.file_system
        if self._mode != "enforce" or (phase.overdue if on is None else on in phase.out_of_turn):
            return
        gates = self._pages.file_systems if on is None else [on]
        self._pages.open_gate(gates) if slice_.open else self._close_gate(gates)
        if slice_.open and not self._sampler.in_call(on):
            self._send(messages.Idle(phase=phase.number, file_system=on))

    def _renew_lease(self, now: float, mode: str) -> None:
        old_mode, self._mode, self._last_heartbeat = self._mode, mode, now
        self._limit_dirty_data()
        phase = self._phase
        if mode != "enforce":
            if old_mode == "enforce":
                if phase is not None and phase.is_waiting:
                    phase.start(now)
                if phase is not None:
                    phase.turns |= phase.file_systems
                self._pages.open_gate()
        elif closed := self._closed_gates(phase):
            if old_mode == "enforce":
                self._pages.extend_closure(self._lease, closed)
            else:
                if phase is not None:  # so far it was only observed
                    phase.waiting_since = now
                    phase.requested = dict.fromkeys(phase.file_systems, now)
                self._close_gate(closed)

    # The connection.

    def _reconnect(self) -> bool:
        """Continue without a controller until one is there; return False if the job ends first."""
        with self._lock:
            self._disconnect()
            self._pages.open_gate()
            if self._phase is not None and self._phase.is_waiting and self._mode == "enforce":
                self._fail_open(self._clock(), self._phase, "lapses")
        if self._connect is None:
            return False
        while not self._stopped.wait(self._limits.reconnect_interval):
            with suppress(OSError, InputError), ExitStack() as stack:
                controller = stack.enter_context(self._connect())
                resume = msgspec.structs.replace(
                    self._begin, resumes=self.id, counters=self.counters(), usage=self.usage()
                )
                accepted = controller.ask(resume, messages.JobAccepted)
                with self._lock:
                    self._controller = controller
                    self._resume(self._clock(), accepted)
                stack.pop_all()
                return True
        return False

    def _resume(self, now: float, accepted: messages.JobAccepted) -> None:
        self._apply(now, accepted)
        if self._exit is not None:
            self._send(self._exit)
        phase = self._phase
        if phase is not None:
            # A phase that transfers is not stopped again.
            phase.out_of_turn.update(self._pages.file_systems)
            if phase.turn is None:
                phase.turn, phase.is_lent = now, False
            self._pages.open_gate()
            self._request_turn(phase, transferring=max(now - phase.turn, 0.0))

    def _disconnect(self) -> None:
        controller, self._controller = self._controller, None
        if controller is not None:
            with suppress(OSError):
                controller.shut_down()

    def _send(self, message: messages.Message) -> None:
        if self._controller is not None:
            try:
                self._controller.send(message)
            except OSError:
                self._disconnect()  # part of a line may be sent: the connection is unusable
