"""Real jobs on the emulated disks while the Council chooses the window, or while it stays.

A layer is a controller and I/O nodes of its own. Without a Council it has one window, which may be
set between two jobs.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.config import Config
from penstock.config.sections import LiveSection, SharingSection
from penstock.config.tuning import TuningSection
from penstock.live.agent import runner
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment, check_emulation, check_roots
from penstock.live.measure import window_survey
from penstock.live.measure.access_patterns import DATA, Phase
from penstock.live.measure.explorer import Cell, Explorer, RankTime
from penstock.live.measure.scratch import in_memory, interruptible, private_state
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.state_directory import StateDirectory

PROCESSES, IO_NODES = 16, 4
INTERVAL = 0.25
"""Seconds between two choices; the thesis has one second, and phases of minutes."""
DEFAULT = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowInForce:
    """The operation and the window in force at a time, in seconds after the job began."""

    at: float
    operation: str
    window: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowEstimate:
    """A tuner's estimate for a window in a context: its count, and bytes per busy second."""

    operation: str
    pattern: str
    load: int
    window: float
    count: float
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A job: the seconds and bytes of each pattern, by repetition; and the windows in force."""

    seconds: Sequence[Mapping[int, float]]
    volume: Mapping[int, int]
    windows: Sequence[WindowInForce]


def tuned(policy: str, **more: Any) -> TuningSection:
    """Return how a layer is tuned."""
    return TuningSection(
        policy=policy, tune=("window",), interval=INTERVAL, deadline=INTERVAL, **more
    )


class Layer:
    """A controller and I/O nodes, with a Council or (no section) without; a context manager."""

    def __init__(
        self, phases: Sequence[Phase], section: TuningSection | None = None, *, seed: int = 0
    ) -> None:
        self._phases = phases
        self._section = section
        self._seed = seed
        self._stack = ExitStack()

    def __enter__(self) -> "Layer":
        with ExitStack() as stack:
            stack.enter_context(interruptible())
            root = stack.enter_context(in_memory())
            self._state = StateDirectory(stack.enter_context(private_state()))
            roots = check_roots((root,))
            deployment = Deployment(
                state=str(self._state.folder),
                roots=roots,
                io_nodes=IO_NODES,
                emulate=check_emulation(window_survey.EMULATED_STORAGE, roots),
                attached=True,
                settings=messages.Settings(scheduler="twins", window=DEFAULT),
                config=Config(
                    sharing=SharingSection(policy="fair-share"),
                    live=LiveSection(mode="off" if self._section is None else "enforce"),
                    tuning=self._section or TuningSection(),
                ),
            )
            self._explorer = stack.enter_context(
                Explorer(deployment, self._phases, seed=self._seed, mpi=False, distribution="block")
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *why: object) -> None:
        self._stack.__exit__(*why)  # type: ignore[arg-type]

    def set(self, window: float) -> None:
        """Give all I/O nodes a window."""
        for k in range(IO_NODES):
            with ControlConnection(self._state.control_socket(k)) as node:
                node.ask(messages.Settings(window=window), messages.Done)

    def play(self, phase: Phase) -> Played:
        """Run a job of that phase; LaunchError: it does not count."""
        with _Onlooker(self._state, looks=self._section is not None) as onlooker:
            run = self._explorer.run(Cell(phase.name, PROCESSES, IO_NODES, 0))
        if run.marked:
            raise launcher.LaunchError(f"a run does not count: {run.marked}")
        return Played(
            seconds=_seconds(run.ranks), volume=_volume(run.ranks), windows=onlooker.windows
        )

    def estimates(self) -> list[WindowEstimate]:
        """End the layer and return what its tuner has learnt of the window."""
        launcher.down(self._state)
        estimates = []
        for path in sorted(self._state.tuning.glob("*.json")):
            content: dict[str, Any] = msgspec.json.decode(path.read_bytes())
            for context in content["learned"]["tuners"]["window"]["contexts"]:
                arms = zip(context["values"], context["count"], context["mean"], strict=True)
                estimates += [
                    WindowEstimate(
                        operation=context["operation"],
                        pattern=context["pattern"],
                        load=context["load"],
                        window=float(value),
                        count=float(count),
                        mean=float(mean),
                    )
                    for value, count, mean in arms
                ]
        return estimates


class _Onlooker:
    """Asks the controller at every interval which window is in force; a context manager."""

    def __init__(self, state: StateDirectory, *, looks: bool) -> None:
        self._state = state
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True) if looks else None
        self.windows: list[WindowInForce] = []

    def __enter__(self) -> "_Onlooker":
        if self._thread is not None:
            with runner.blocked(runner.FORWARDED):  # they are for the job
                self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _look(self) -> None:
        began = time.monotonic()
        with ControlConnection(self._state.controller) as controller:
            while not self._over.wait(INTERVAL):
                status = controller.ask(messages.GetStatus(), messages.Status)
                busy = next((node for node in status.io_nodes if node.operation), None)
                if busy is not None:
                    self.windows.append(
                        WindowInForce(
                            at=time.monotonic() - began,
                            operation=str(busy.operation),
                            window=float((busy.tuned or {})["window"]),
                        )
                    )


def _seconds(ranks: Sequence[RankTime]) -> list[dict[int, float]]:
    """Return the slowest rank's time, by repetition and pattern."""
    by_repetition: dict[int, dict[int, float]] = {}
    for one in ranks:
        if one.operation in DATA:
            by_pattern = by_repetition.setdefault(one.repetition, {})
            by_pattern[one.pattern] = max(by_pattern.get(one.pattern, 0.0), one.seconds)
    return [by_repetition[repetition] for repetition in sorted(by_repetition)]


def _volume(ranks: Sequence[RankTime]) -> dict[int, int]:
    volume: dict[int, int] = {}
    for one in ranks:
        if one.operation in DATA and one.repetition == 0:
            volume[one.pattern] = volume.get(one.pattern, 0) + one.bytes
    return volume
