"""Real jobs on the emulated disks while the Council chooses the window, or while it is fixed.

Every run has its own controller and I/O nodes. A run with a window that stays is the same job, on
the same layer, with no Council.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from penstock.config import Config
from penstock.config.sections import LiveSection, SharingSection
from penstock.config.tuning import TuningSection
from penstock.live import launcher, wire, worths
from penstock.live.channel import Channel
from penstock.live.deployment import Deployment, emulated, managed
from penstock.live.explorer import (
    Cell,
    Explorer,
    Timed,
    in_memory,
    interruptible,
    private_state,
)
from penstock.live.patterns import DATA, Pattern, Phase
from penstock.live.state import State

PROCESSES, IO_NODES = 16, 4
KIB, MIB = 2**10, 2**20
INTERVAL = 0.1
"""Seconds between two choices; the thesis has one, and phases of minutes."""
DEFAULT = 1e-3
LOOKS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What the Council saw and chose, so many seconds after the job began."""

    at: float
    operation: str
    window: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A run: how long each pattern took, repetition by repetition, and what was chosen."""

    seconds: Sequence[Mapping[int, float]]
    """By repetition, then by the pattern's place in the phase."""
    volume: Mapping[int, int]
    """Bytes of a pattern."""
    chosen: Sequence[Chosen] = ()
    learned: Mapping[str, Any] = field(default_factory=dict)
    rounds: int = 0

    def whole(self, repetition: int) -> float:
        """Return the seconds of a repetition."""
        return sum(self.seconds[repetition].values())


def write_read(repetitions: int, *, part: float = 1.0) -> Phase:
    """Return the thesis' benchmark (4.2.3), smaller: a shared file, written then read, strided."""

    def pattern(operation: Any, volume: float) -> Pattern:
        return Pattern(
            operation=operation,
            path="shared",
            number_of_files="shared",
            spatiality="strided",
            request_size=32 * KIB,
            total_size=int(volume * MIB),
        )

    patterns = [pattern("write", 64 * part), pattern("read", 32 * part)]
    return Phase(name="write-read", patterns=patterns, repetitions=repetitions)


def tuned(policy: str, options: Mapping[str, Any] | None = None, **more: Any) -> TuningSection:
    """Return how a run is tuned."""
    told = {"policy": policy, "options": dict(options or {}), "tune": ("window",)}
    return msgspec.structs.replace(TuningSection(interval=INTERVAL, deadline=INTERVAL), **told, **more)


def play(
    phase: Phase,
    section: TuningSection | None = None,
    *,
    window: float = DEFAULT,
    processes: int = PROCESSES,
    io_nodes: int = IO_NODES,
    seed: int = 0,
) -> Played:
    """Run a job, with the Council or (None) the window as it is."""
    config = Config(
        sharing=SharingSection(policy="fair-share"),
        live=LiveSection(mode="enforce" if section is not None else "off"),
        tuning=section or TuningSection(),
    )
    with interruptible(), in_memory() as root, private_state() as folder:
        state, roots = State(folder), managed((root,))
        deployment = Deployment(
            state=str(folder),
            roots=roots,
            io_nodes=io_nodes,
            emulate=emulated(worths.EMULATED, roots),
            attached=True,
            settings=wire.Settings(scheduler="twins", window=window),
            config=config,
        )
        with (
            Explorer(deployment, [phase], seed=seed, mpi=False, blocks=True) as explorer,
            _Onlooker(state, looks=section is not None) as onlooker,
        ):
            run = explorer.run(Cell(phase.name, processes, io_nodes, 0))
        if run.marked:
            raise launcher.LaunchError(f"a run does not count: {run.marked}")
        seconds = _seconds(run.ranks)
        return Played(
            seconds=seconds,
            volume=_volume(run.ranks),
            chosen=onlooker.seen,
            learned=_learned(state),
            rounds=onlooker.rounds,
        )


class _Onlooker:
    """Asks the controller every so often what the Council chose; a context manager."""

    def __init__(self, state: State, *, looks: bool) -> None:
        self._state = state
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True) if looks else None
        self.seen: list[Chosen] = []
        self.rounds = 0

    def __enter__(self) -> "_Onlooker":
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _look(self) -> None:
        began = time.monotonic()
        with Channel(self._state.controller) as controller:
            while not self._over.wait(LOOKS):
                status = controller.ask(wire.Ask(), wire.Status)
                self.rounds = int(str((status.tuning or {}).get("rounds", 0)))
                for node in status.io_nodes:
                    told = dict(node)
                    if (operation := told.get("operation")) is None:
                        continue
                    window = told["tuned"].get("window")  # type: ignore[attr-defined]
                    at = time.monotonic() - began
                    self.seen.append(Chosen(at=at, operation=str(operation), window=float(window)))
                    break


def _seconds(ranks: Sequence[Timed]) -> list[dict[int, float]]:
    """Return the slowest rank's time, by repetition and pattern."""
    found: dict[int, dict[int, float]] = {}
    for one in ranks:
        if one.operation in DATA:
            by_pattern = found.setdefault(one.repetition, {})
            by_pattern[one.pattern] = max(by_pattern.get(one.pattern, 0.0), one.seconds)
    return [found[repetition] for repetition in sorted(found)]


def _volume(ranks: Sequence[Timed]) -> dict[int, int]:
    found: dict[int, int] = {}
    for one in ranks:
        if one.operation in DATA and one.repetition == 0:
            found[one.pattern] = found.get(one.pattern, 0) + one.bytes
    return found


def _learned(state: State) -> dict[str, Any]:
    """Return what the tuner of the window has learnt, as it was saved when the run ended."""
    for path in sorted(state.tuning.glob("*.json")):
        told: dict[str, Any] = msgspec.json.decode(path.read_bytes())
        found: dict[str, Any] = told["learned"]["tuners"].get("window", {})
        return found
    return {}
