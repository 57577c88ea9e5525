"""A running job's half of the agent: watches its pages, tells the controller, does as it is told.

The job's gate is closed between phases where turns are enforced; a phase knocks, the controller is
asked, and the gate opens when it says so. It is never closed for longer than a lease without a word
from the controller: when that goes, or this process does, the gate opens by itself.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec

from penstock.errors import InputError
from penstock.files import reason
from penstock.learn.phases import Began, Ended
from penstock.live.agent.phase_sampler import Watch
from penstock.live.agent.phase_turn import Asked
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.counters import COUNTER_INTERVAL
from penstock.live.protocol.exit_spool import ExitSpool
from penstock.live.protocol.shared_page import SharedPages

log = logging.getLogger("penstock.agent")
CALLS_WAIT_LONGER = 1.0
"""Seconds that a call waits beyond its phase: who ends the wait counts it, and that is not both."""
LAST_WORD_WITHIN = 2.0
LOOKS_EVERY = 0.05
"""Seconds between two looks at a job that does not knock."""
LENT_AFTER = 1.0
"""Seconds without a call after which a phase that the job said lends its turn."""
RECONNECTS_EVERY = 0.5
LONG_AGO = 1e6
"""Seconds after which any phase is over."""
MOST_BYTES = 2**63 - 1
_FROM_CONTROLLER = (
    messages.NodeMap
    | messages.Turn
    | messages.Hold
    | messages.Slice
    | messages.Heartbeat
    | messages.Done
    | messages.Failure
)


class Member:
    """A job of a deployment; `connect` makes a new connection when the controller is gone."""

    def __init__(
        self,
        controller: ControlConnection,
        begin: messages.BeginJob,
        begun: messages.JobAccepted,
        pages: SharedPages,
        connect: Callable[[], ControlConnection] | None = None,
        *,
        last_words: ExitSpool | None = None,
    ) -> None:
        """`last_words`: where its end is kept if no controller hears it."""
        self.id = begun.job
        self.advice = ""
        """What the controller has to say at the end, in advise mode."""
        self._begin = begin
        self._pages = pages
        self._connect = connect
        self._last_words = last_words
        self._since = time.time()
        self._channel: ControlConnection | None = controller
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._answered = threading.Event()
        self._ending = False
        self._maps = 0  # taken so far, so that the controller knows which one is in force
        self._gone_on = dict.fromkeys(("lapses", "overdue", "policy_failed"), 0)
        """Phases that went on without their turn, by why."""
        self._waited = 0.0  # seconds, for turns
        self._phases = 0
        self._phase: Asked | None = None
        self._watched = Watch(pages)
        self._offered = 0.0  # when its turn was last offered to others
        self._announced = 0
        self._take(begun)
        self._threads = [
            threading.Thread(target=target, name=f"penstock-{name}", daemon=True)
            for name, target in (("listen", self._listen), ("watch", self._watch))
        ]
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:  # interrupted: those that run would outlive the pages
            self._stop()
            raise

    def end(self, status: int) -> dict[str, int]:
        """Tell the controller that the job ended; return its last counters."""
        with self._lock:
            now = time.monotonic()
            self._look(now)
            self._look(now, ahead=LONG_AGO)  # a phase that had not ended by itself
            counters = self.counters()
            self._last, self._ending = messages.JobExit(counters=counters, status=status), True
            self._tell(self._last)
            channel = self._channel
        if channel is None or not self._answered.wait(LAST_WORD_WITHIN):
            self._leave_word(counters, status)
        self._stop()
        return counters

    def _stop(self) -> None:
        self._over.set()
        self._pages.wake()
        with self._lock:
            self._hang_up()
        for thread in self._threads:
            with suppress(RuntimeError):  # it was never started
                thread.join()

    def _leave_word(self, counters: dict[str, int], status: int) -> None:
        if self._last_words is None:
            return
        word = messages.UnreportedExit(
            job=self.id,
            begin=self._begin,
            began=self._since,
            ended=time.time(),
            counters=counters,
            status=status,
        )
        try:
            self._last_words.write(word)
        except OSError as error:
            log.warning("how job %s ended is told to nobody: %s", self.id, reason(error))

    def counters(self) -> dict[str, int]:
        """Return the job's counters, summed over threads, and what this half of it counted."""
        own = {"maps": self._maps, "phases": self._phases, "turn_waited": round(self._waited * 1e9)}
        return self._pages.totals() | own | self._gone_on

    def _take(self, begun: messages.JobAccepted) -> None:
        """Be a job as the controller says, the first one or one that came after it."""
        self._mode, self._lease, self._longest = begun.mode, begun.lease, begun.longest_wait
        self._beaten = time.monotonic()
        self._dirty_window = begun.dirty_window
        self._pages.assign(begun.nodes, stripe=begun.stripe)
        self._bound_dirty()
        self._gate(open_=self._mode != "enforce")

    def _bound_dirty(self) -> None:
        self._pages.limit_dirty_data(self._dirty_window if self._mode == "enforce" else 0)

    def _gate(self, *, open_: bool) -> None:
        if open_:
            self._pages.open_gate()
        else:
            self._pages.close_gate(self._beaten + self._lease - time.monotonic())

    # What the job does.

    def _watch(self) -> None:
        counted = time.monotonic()
        while not self._over.is_set():
            knocks = self._pages.knocks
            now = time.monotonic()
            with self._lock:
                self._look(now)
                if now - counted >= COUNTER_INTERVAL:
                    counted = now
                    self._tell(messages.JobCounters(counters=self.counters()))
            self._pages.await_knock(knocks, self._patience(now))

    def _patience(self, now: float) -> float:
        due = self._watched.finder.due
        return LOOKS_EVERY if due is None else min(max(due - now, 0.001), LOOKS_EVERY)

    def _look(self, now: float, ahead: float = 0.0) -> None:
        for found in self._watched.look(now + ahead):
            self._let_go(now)  # a phase that is over may have passed a gate that opened by itself
            if isinstance(found, Began):
                self._began(now)
            elif isinstance(found, Ended):
                self._ended(now, found)
        self._let_go(now)
        if self._phase is not None and self._mode == "enforce":
            self._lend(now, self._phase)

    def _lend(self, now: float, phase: Asked) -> None:
        """Offer the turn of a phase that the job said and does not use; ask again when it calls."""
        if phase.lent:
            if self._watched.waits():
                phase.ask_again(now)
                self._ask(phase)
            return
        finder = self._watched.finder
        if phase.turn is None or phase.overdue or not finder.marked:
            return
        # Who waited for long had no call to show for it when its turn came.
        idle = min(self._watched.quiet(now), now - max(self._offered, phase.turn))
        if idle >= max(LENT_AFTER, 2 * finder.gap):
            self._offered = now
            self._tell(messages.Idle(phase=phase.number, lends=True))

    def _let_go(self, now: float) -> None:
        """End a wait for a controller that is silent, or one that is too long."""
        phase = self._phase
        if phase is None or phase.turn is not None or self._mode != "enforce":
            return
        lapsed = now - self._beaten >= self._lease
        if phase.lent:
            if not lapsed or self._watched.quiet(now):
                return
            phase.ask_again(now)
        if lapsed:  # when its gate opened, however late this process takes note of it
            opened = max(self._beaten + self._lease, phase.asked)
            self._go_on(min(opened, now), phase, "lapses")
        elif phase.waited + now - phase.asked >= self._longest:
            self._go_on(now, phase, "overdue")

    def _go_on(self, now: float, phase: Asked, why: str) -> None:
        """Let a phase transfer that has not got its turn."""
        phase.go(now)
        phase.overdue = True
        self._gone_on[why] += 1
        self._gate(open_=True)

    def _began(self, now: float) -> None:
        self._phases += 1
        self._phase = Asked(self._phases, now, now, self._length())
        if self._channel is None and self._mode == "enforce":
            self._go_on(now, self._phase, "lapses")  # there is nobody to wait for
        self._ask(self._phase)

    def _ask(self, phase: Asked) -> None:
        self._tell(messages.PhaseBegan(phase=phase.number, bytes=phase.bytes))

    def _length(self) -> int | None:
        """Return the bytes that the job's processes announced since the last phase; None: none."""
        had, self._announced = self._announced, self._pages.announced_bytes
        told = self._announced - had
        return told if 0 < told <= MOST_BYTES else None

    def _ended(self, now: float, found: Ended) -> None:
        phase, self._phase = self._phase, None
        if phase is None:
            return
        if phase.lent:
            self._ask(phase)  # whose end is told with all of it
        seconds = phase.over(found.time, enforced=self._mode == "enforce")
        self._waited += phase.waited
        self._tell(
            messages.PhaseEnded(
                phase=phase.number,
                bytes=found.moved,
                seconds=seconds,
                waited=phase.waited,
                idle=max(now - found.time, 0.0),
                small=found.small,
            )
        )
        if self._mode == "enforce" and self._channel is not None:
            self._gate(open_=False)

    # What the controller says.

    def _listen(self) -> None:
        while not self._over.is_set():
            channel = self._channel
            if channel is not None:
                with suppress(OSError):
                    while self._heard(channel.receive(_FROM_CONTROLLER, None)):
                        pass
            if self._answered.is_set() or self._over.is_set() or not self._again():
                return

    def _heard(self, message: object) -> bool:
        now = time.monotonic()
        with self._lock:
            self._let_go(now)  # the gate has opened by itself: it is too late to close it
            match message:
                case messages.Heartbeat(mode=mode):
                    self._beat(now, mode)
                case messages.Turn(phase=number) if self._phase and self._phase.number == number:
                    self._admitted(now, self._phase, message)
                case messages.Hold(phase=number) if self._phase and self._phase.number == number:
                    self._held(now, self._phase, lent=message.turn_lent)
                case messages.Slice(phase=number) if self._phase and self._phase.number == number:
                    if self._mode == "enforce" and not self._phase.overdue:
                        self._gate(open_=message.open)
                        if message.open and not self._watched.calls():
                            self._tell(messages.Idle(phase=number))
                case messages.NodeMap(nodes=nodes, stripe=stripe):
                    self._pages.assign(nodes, stripe=stripe)
                    self._maps += 1
                    self._tell(messages.JobCounters(counters=self.counters()))
                case messages.Done() | messages.Failure() if self._ending:
                    self.advice = message.advice if isinstance(message, messages.Done) else ""
                    self._answered.set()
                    return False
        return True

    def _admitted(self, now: float, phase: Asked, told: messages.Turn) -> None:
        if phase.turn is not None:
            self._gate(open_=True)
        elif self._mode != "enforce":
            phase.turn = phase.began  # who is observed has not waited
        elif told.overdue:
            self._go_on(now, phase, "policy_failed" if told.failed else "overdue")
        else:
            phase.go(now)
            self._gate(open_=True)

    def _held(self, now: float, phase: Asked, *, lent: bool) -> None:
        if self._mode == "enforce" and not phase.overdue and phase.turn is not None:
            phase.lend(now) if lent else phase.stop(now)
            self._gate(open_=False)

    def _beat(self, now: float, mode: str) -> None:
        was, self._mode, self._beaten = self._mode, mode, now
        self._bound_dirty()
        phase = self._phase
        if mode != "enforce":
            if was == "enforce":
                if phase is not None and phase.waits:
                    phase.go(now)
                self._gate(open_=True)
        elif phase is None or phase.turn is None:
            if was == "enforce":
                self._pages.extend_closure(self._lease)
            else:
                if phase is not None:
                    phase.asked = now  # until now it only would have waited
                self._gate(open_=False)

    def _again(self) -> bool:
        """Go on without the controller, until there is one again."""
        with self._lock:
            self._hang_up()
            self._gate(open_=True)
            if self._phase is not None and self._phase.waits and self._mode == "enforce":
                self._go_on(time.monotonic(), self._phase, "lapses")
        while self._connect is not None and not self._over.wait(RECONNECTS_EVERY):
            with suppress(OSError, InputError), self._connected() as channel:
                resuming = msgspec.structs.replace(self._begin, resumes=self.id)
                begun = channel.ask(resuming, messages.JobAccepted)
                with self._lock:
                    self._channel = channel
                    self._take(begun)
                    if self._ending:
                        self._tell(self._last)
                    if self._phase is not None:
                        self._phase.overdue = True  # amid a phase nobody is stopped again
                        if self._phase.turn is None:
                            self._phase.turn = time.monotonic()
                            self._phase.lent = False
                        self._gate(open_=True)
                        self._ask(self._phase)
                return True
        return False

    @contextmanager
    def _connected(self) -> Iterator[ControlConnection]:
        assert self._connect is not None
        channel = self._connect()
        try:
            yield channel
        except BaseException:
            channel.close()
            raise

    def _hang_up(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            with suppress(OSError):
                channel.shut_down()

    def _tell(self, message: messages.Message) -> None:
        if self._channel is not None:
            try:
                self._channel.send(message)
            except OSError:
                self._hang_up()  # half a line may be under way: only another connection will do
