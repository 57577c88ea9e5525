"""The figures that rest on recorded rewards."""

from collections.abc import Sequence

from penstock.report.findings import Bars, Curves, Figure, Reference, Series
from penstock.sim.evaluate.bandits import Learning
from penstock.studies.tuning.choices import Choices
from penstock.studies.tuning.claims import KINDS, show, strided
from penstock.studies.tuning.offline import AGAIN_WITHIN, CHANGES_AT, OURS, Offline

MEASURED = "Measured by our I/O nodes, of real processes, on an emulated file system"
DRAWN = "Drawn from rewards that our I/O nodes measured on an emulated file system"
SHORT = {"oracle": "O", "static": "S", "tree": "T", "forest": "F", "network": "N"}


def figures(offline: Offline, choices: Choices) -> list[Figure]:
    """Return all figures."""
    return [
        _windows(offline),
        _choices(choices),
        _epsilons(offline),
        _interleaved(offline),
        _policies(offline),
        _changed(offline),
    ]


def _windows(offline: Offline) -> Figure:
    panels = []
    for does in ("read", "write"):
        scenario = strided(does)
        means = offline.means[scenario]
        base = {name: offline.baselines[scenario, name] for name in ("fifo", "hbrr")}
        heights = [*base.values(), *means.values()]
        panels.append(
            Bars(
                title=does,
                x="scheduler, or window of TWINS",
                y="MiB/s in all",
                labels=[*base, *map(show, means)],
                series=[Series(label=does, x=(), y=[scenario.io_nodes * each for each in heights])],
                references=[Reference(y=scenario.io_nodes * base["fifo"], label="fifo")],
            )
        )
    return Figure(
        name="fig-3-8-windows",
        title="Fig. 3.8: the window decides, and not alike for reads and writes",
        caption=f"{MEASURED}: 16 processes, 4 I/O nodes, shared file, strided; reads of 256 KiB, "
        "writes of 32 KiB. Bandwidth, where the thesis has times.",
        panels=panels,
        source="measured",
    )


def _choices(choices: Choices) -> Figure:
    names = ("oracle", "static", *KINDS)
    io_nodes = sorted({n for _, _, n in choices.increased})
    panels = [
        Bars(
            title=f"{does}s {word}",
            x="I/O nodes",
            y="observations",
            labels=[str(n) for n in io_nodes],
            series=[
                Series(label=SHORT[name], x=(), y=[counts[does, name, n] for n in io_nodes])
                for name in names
            ],
            key=True,
        )
        for word, counts in (("improved", choices.increased), ("worsened", choices.decreased))
        for does in ("read", "write")
    ]
    return Figure(
        name="tables-3-6-3-7-choices",
        title="Tables 3.6 and 3.7: windows by detected pattern against 1 ms",
        caption=f"{MEASURED}. Of {choices.observations} observations: O oracle, S static 125 us, "
        "T tree, F forest, N network.",
        panels=panels,
        columns=2,
        source="measured",
    )


def _x(learning: Learning) -> list[float]:
    return [learning.bin * (k + 1) for k in range(learning.precision.shape[1])]


def _series(label: str, learning: Learning, letter: str, *, precise: bool = True) -> Series:
    k = learning.scenarios.index(letter)
    values = learning.precision if precise else learning.performance
    return Series(label=label, x=_x(learning), y=values[k].tolist())


def _panel(title: str, series: Sequence[Series], y: str = "precision") -> Curves:
    return Curves(title=title, x="observations", y=y, series=series, bottom=0, top=1)


def _epsilons(offline: Offline) -> Figure:
    panels = [
        _panel(
            letter,
            [_series(f"epsilon {e:g}", each, letter) for e, each in offline.epsilons.items()],
        )
        for letter in offline.six
    ]
    return Figure(
        name="fig-4-3-epsilon",
        title="Fig. 4.3: how often epsilon-greedy chooses the best window",
        caption=f"{DRAWN}; bins of 10, {offline.repetitions} repetitions. {_named(offline)}",
        panels=panels,
        columns=3,
    )


def _named(offline: Offline) -> str:
    return "; ".join(f"{letter}: {one.name}" for letter, one in offline.six.items()) + "."


def _interleaved(offline: Offline) -> Figure:
    learning = offline.interleaved
    return Figure(
        name="fig-4-4-interleaved",
        title="Fig. 4.4: six access patterns that come in random order",
        caption=f"{DRAWN}; bins of 50, epsilon 0.15. {_named(offline)}",
        panels=[
            _panel("precision", [_series(letter, learning, letter) for letter in offline.six]),
            _panel(
                "performance",
                [_series(letter, learning, letter, precise=False) for letter in offline.six],
                y="share of the best window's",
            ),
        ],
    )


def _policies(offline: Offline) -> Figure:
    greedy = offline.epsilons[0.10]
    shown = {"epsilon 0.1": greedy, **{n: offline.policies[n] for n in ("ucb1", OURS)}}
    panels = [
        _panel(letter, [_series(name, each, letter) for name, each in shown.items()])
        for letter in offline.six
    ]
    return Figure(
        name="fig-4-5-ucb1",
        title="Fig. 4.5: UCB1 and ours against epsilon-greedy",
        caption=f"{DRAWN}; bins of 10, {offline.repetitions} repetitions. {_named(offline)}",
        panels=panels,
        columns=3,
    )


def _changed(offline: Offline) -> Figure:
    series = [
        Series(label=name, x=_x(each), y=each.performance.mean(axis=0).tolist())
        for name, each in offline.changed.items()
    ]
    return Figure(
        name="changing-world",
        title="When the best window becomes the worst",
        caption=f"{DRAWN}, in the {len(offline.mattering)} scenarios where the window matters; "
        f"ranks are reversed at observation {CHANGES_AT}, the bar is {AGAIN_WITHIN} later.",
        panels=[
            Curves(
                title="mean over scenarios",
                x="observations",
                y="share of the best window's performance",
                series=series,
                references=[Reference(y=0.95, label="0.95")],
            )
        ],
    )
