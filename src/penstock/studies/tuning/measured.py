"""What the study runs, cell by cell, as rows; and rows as what was measured."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from statistics import fmean
from typing import Literal

from penstock.campaign.cells import Cell
from penstock.campaign.journal import Row, Value
from penstock.campaign.sizes import Size
from penstock.config.tuning import PARAMETERS, TuningSection
from penstock.core.council import Council, Experience
from penstock.data import windows
from penstock.data.windows import RewardSeries
from penstock.learn.detection import model, samples
from penstock.live.measure import window_survey
from penstock.live.measure.access_patterns import Pattern, Phase
from penstock.live.measure.scratch import in_memory, interruptible, private_state
from penstock.studies.tuning.online import Layer, Played, tuned

SHIPPED, FIXED, MADBENCH, OVERHEAD, DECISION = (
    "shipped",
    "fixed",
    "madbench",
    "overhead",
    "decision",
)
MADBENCH_FIXED = "madbench fixed"
ONLINE = "online "
POLICIES = ("discounted-ucb", "epsilon-greedy", "ucb1")
MADBENCH_POLICIES = POLICIES[:2]
"""Ours, and the thesis' (4.2.4)."""
OPTIONS: Mapping[str, Mapping[str, float]] = {
    "epsilon-greedy": {"epsilon": 0.07},
    "ucb1": {"unit": 1e6},
}
"""As in the thesis: live rewards are bytes per second, and Equation 4.2 is in MB/s."""
DEPLOYED = (12, 48, 96, 240, 768)
"""I/O nodes that report to one Council (Fig. 4.12)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """The size of each part of the study."""

    repetitions: Mapping[str, int]
    """Repetitions of writing and reading, by policy."""
    fixed: int
    """Repetitions with a window that stays."""
    madbench: int
    """Repetitions of the jobs like MADbench2, by policy."""
    madbench_fixed: int
    """Their repetitions with each window that stays."""
    part: float
    """Part of the volume of the jobs like MADbench2."""
    madbench_windows: tuple[float, ...]
    pairs: int
    rounds: int
    """Choices timed for each number of I/O nodes: a 99th percentile needs some hundred."""
    volume: float = 1.0
    """Part of the volume that the other jobs write and read."""
    draws: int = 100
    """How often policies learn from recorded rewards."""
    trees: int = 100
    """Trees of the forest that detects access patterns."""


SHORT = Amounts(
    repetitions=dict.fromkeys(POLICIES, 2),
    fixed=1,
    madbench=2,
    madbench_fixed=1,
    part=0.1,
    madbench_windows=(125e-6, 4e-3),
    pairs=2,
    rounds=5,
    volume=0.1,
    draws=20,
    trees=20,
)
FAST = Amounts(
    repetitions={"discounted-ucb": 6, "epsilon-greedy": 3, "ucb1": 3},
    fixed=1,
    madbench=8,
    madbench_fixed=4,
    part=0.5,
    madbench_windows=(125e-6, 1e-3, 4e-3),
    pairs=12,
    rounds=200,
)
LONG = Amounts(
    repetitions=dict.fromkeys(POLICIES, 60),
    fixed=5,
    madbench=30,
    madbench_fixed=5,
    part=1.0,
    madbench_windows=window_survey.WINDOWS,
    pairs=60,
    rounds=300,
)
SIZES: Mapping[Size, Amounts] = {"quick": SHORT, "fast": FAST, "full": LONG}


def run_cell(cell: Cell, *, size: Amounts, seed: int) -> list[dict[str, Value]]:
    """Run one cell."""
    name = cell.scenario
    if name.startswith(ONLINE):
        policy = name.removeprefix(ONLINE)
        phase = write_read(size.repetitions[policy], part=size.volume)
        return list(_tuned(phase, policy, name))
    parts: Mapping[str, Callable[[], Iterable[dict[str, Value]]]] = {
        SHIPPED: lambda: ({"part": "worth", **one.row} for one in windows.shipped()),
        FIXED: lambda: _fixed(
            write_read(size.fixed, part=size.volume), window_survey.WINDOWS, FIXED
        ),
        MADBENCH: lambda: _madbench(size),
        OVERHEAD: lambda: _overhead(size),
        DECISION: lambda: _decisions(size.rounds),
    }
    return list(parts[name]()) if name in parts else _rewards(cell, seed)


def _madbench(size: Amounts) -> Iterator[dict[str, Value]]:
    fixed = madbench(size.madbench_fixed, part=size.part)
    yield from _fixed(fixed, size.madbench_windows, MADBENCH_FIXED)
    for policy in MADBENCH_POLICIES:
        phase = madbench(size.madbench, part=size.part)
        yield from _tuned(phase, policy, f"{MADBENCH} {policy}")


def _fixed(phase: Phase, lengths: Sequence[float], run: str) -> Iterator[dict[str, Value]]:
    with Layer([phase]) as layer:
        for window in lengths:
            layer.set(window)
            yield from _rows(layer.play(phase), run, window)


def _tuned(phase: Phase, policy: str, run: str) -> Iterator[dict[str, Value]]:
    with Layer([phase], tuned(policy, options=OPTIONS.get(policy, {}))) as layer:
        played = layer.play(phase)
        estimates = layer.estimates()
    yield from _rows(played, run, None)
    yield from ({"part": "chosen", "run": run, **asdict(one)} for one in played.windows)
    yield from ({"part": "known", "run": run, **asdict(one)} for one in estimates)


def _rows(played: Played, run: str, window: float | None) -> Iterator[dict[str, Value]]:
    for repetition, seconds in enumerate(played.seconds):
        for place, duration in seconds.items():
            yield {
                "part": "job",
                "run": run,
                "window": window,
                "repetition": repetition,
                "place": place,
                "seconds": duration,
                "volume": played.volume[place],
            }


def _overhead(size: Amounts) -> Iterator[dict[str, Value]]:
    """Write with a Council whose choices are reported but not set, and without one, in turn."""
    phase = writing(160 * size.volume)
    with Layer([phase]) as plain, Layer([phase], tuned(POLICIES[0], dry_run=True)) as observed:
        for pair in range(size.pairs + 1):
            for name, layer in (("none", plain), ("dry-run", observed)):
                played = layer.play(phase)
                if pair:  # the first of each warms up
                    yield {
                        "part": "overhead",
                        "run": name,
                        "repetition": pair,
                        "seconds": played.seconds[0][0],
                        "volume": played.volume[0],
                    }


def _decisions(rounds: int) -> Iterator[dict[str, Value]]:
    """Time a Council in this process: from the last I/O node's report to the choice."""
    observations = [one.observation for one in samples.shipped()]
    window = PARAMETERS["window"]
    for deployed in DEPLOYED:
        tuner = TuningSection(tune=("window",)).tuner()
        council = Council([window], Experience({"window": tuner}), model.shipped())
        for k in range(deployed):
            council.joined(k)
        for turn in range(rounds):
            for k in range(deployed):
                observation = observations[(turn * deployed + k) % len(observations)]
                began = time.perf_counter()
                council.observed(k, observation, {"window": window.default})
            council.decide()
            yield {"part": "decision", "io_nodes": deployed, "seconds": time.perf_counter() - began}


def _rewards(cell: Cell, seed: int) -> list[dict[str, Value]]:
    """Measure a scenario of the thesis' grid with every window."""
    trials = [
        one
        for one in window_survey.trials(window_survey.FULL, seed)
        if (one.cell.phase, one.cell.processes, one.cell.io_nodes)
        == (cell.scenario, int(cell.x), cell.workload)
    ]
    with (
        interruptible(),
        in_memory() as root,
        private_state() as state,
        window_survey.WindowRuns(
            window_survey.FULL,
            root=root,
            state=state,
            emulate=window_survey.EMULATED_STORAGE,
            seed=seed,
        ) as survey,
    ):
        return [{"part": "worth", **survey.measure(one).row} for one in trials]


class Measured:
    """The rows of a campaign, looked up by what they are."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows: dict[str, list[Row]] = {}
        for row in rows:
            self._rows.setdefault(str(row["part"]), []).append(row)
        self.rewards: list[RewardSeries] = [
            windows.reward_series(row) for row in self.part("worth")
        ]

    def part(self, name: str) -> list[Row]:
        """Return the rows of a part."""
        return self._rows.get(name, [])

    def jobs(self, run: str, window: float | None = None) -> list[dict[int, tuple[float, float]]]:
        """Return seconds and bytes by place, repetition by repetition, of a run."""
        by_repetition: dict[int, dict[int, tuple[float, float]]] = {}
        for row in self.part("job"):
            if row["run"] == run and (window is None or row["window"] == window):
                places = by_repetition.setdefault(int(row["repetition"] or 0), {})
                amounts = (float(row["seconds"] or 0), float(row["volume"] or 0))
                places[int(row["place"] or 0)] = amounts
        return [by_repetition[repetition] for repetition in sorted(by_repetition)]

    def fixed(self, run: str, places: Sequence[int] | None = None) -> dict[float, float]:
        """Return the mean seconds of some places of a job, or all, by the window that stays."""
        lengths = sorted({float(row["window"] or 0) for row in self._job_rows(run)})
        return {window: mean_seconds(self.jobs(run, window), places) for window in lengths}

    def _job_rows(self, run: str) -> list[Row]:
        return [row for row in self.part("job") if row["run"] == run]

    def windows_in_force(self, run: str) -> list[Row]:
        """Return which windows were in force."""
        return [row for row in self.part("chosen") if row["run"] == run]


def mean_seconds(
    repetitions: Sequence[Mapping[int, tuple[float, float]]], places: Sequence[int] | None = None
) -> float:
    """Return the mean time of a repetition, or of some places of it."""
    return fmean(
        sum(amounts[0] for place, amounts in one.items() if places is None or place in places)
        for one in repetitions
    )


def learnt(
    repetitions: Sequence[Mapping[int, tuple[float, float]]],
) -> list[Mapping[int, tuple[float, float]]]:
    """Return the second half of a run, when something has been learnt."""
    return list(islice(repetitions, len(repetitions) // 2, None))


KIB, MIB = 2**10, 2**20
REQUEST = 32 * KIB
WRITE, READ = 0, 1
"""The patterns' places in a job that writes and reads."""
COMPONENTS: Mapping[str, tuple[int, ...]] = {"S": (0,), "W": (1, 2, 3, 4), "C": (5,)}
"""The patterns' places in a job like MADbench2."""


def _strided(operation: Literal["write", "read"], mebibytes: float) -> Pattern:
    return Pattern(
        operation=operation,
        path="shared",
        number_of_files="shared",
        spatiality="strided",
        request_size=REQUEST,
        total_size=int(mebibytes * MIB),
    )


def write_read(repetitions: int, *, part: float = 1.0) -> Phase:
    """Return the thesis' benchmark (4.2.3) in small: a file is written, then some of it read."""
    patterns = [_strided("write", 224 * part), _strided("read", 80 * part)]
    return Phase(name="write-read", patterns=patterns, repetitions=repetitions)


def madbench(repetitions: int, *, part: float = 1.0) -> Phase:
    """Return the I/O of MADbench2 (Table 4.5) in small.

    S writes all matrices, W reads and writes them in turn, C reads them again and again; ranks have
    a part of 32 KiB of each matrix, as of 16 ranks and 256 pixels.
    """
    patterns = [
        _strided("write", 128 * part),
        _strided("read", 24 * part),
        _strided("write", 64 * part),
        _strided("read", 24 * part),
        _strided("write", 64 * part),
        _strided("read", 72 * part),
    ]
    return Phase(name="madbench", patterns=patterns, repetitions=repetitions)


def writing(mebibytes: float) -> Phase:
    """Return a job that writes."""
    return Phase(name="writing", patterns=[_strided("write", mebibytes)])
