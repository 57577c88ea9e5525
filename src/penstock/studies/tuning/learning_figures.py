"""Figures of the windows that rewards recorded offline make policies choose."""

from collections.abc import Iterator, Mapping

from penstock.report.findings import Bars, Curves, Figure, Series
from penstock.sim.evaluate.bandits import Learning
from penstock.studies.panels import bars, curves
from penstock.studies.texts import captions_of
from penstock.studies.tuning.learning import KINDS, show, strided
from penstock.studies.tuning.offline import AGAIN_WITHIN, CHANGES_AT, OURS, Choices, Offline

figure = captions_of("tuning")
SHORT = {"oracle": "O", "static": "S", "tree": "T", "forest": "F", "network": "N"}


def figures(offline: Offline, choices: Choices) -> list[Figure]:
    """Return all figures."""
    return [_figure_3_8(offline), _tables_3_6_and_3_7(choices), *_learning(offline)]


def _figure_3_8(offline: Offline) -> Figure:
    def panel(operation: str) -> Bars:
        scenario = strided(operation)
        means = offline.means[scenario]
        base = {name: offline.baselines[scenario, name] for name in ("fifo", "hbrr")}
        rewards = [*base.values(), *means.values()]
        return bars(
            operation,
            [*base, *map(show, means)],
            {operation: [scenario.io_nodes * each for each in rewards]},
            x="scheduler, or window of TWINS",
            y="MiB/s in all",
            lines={"fifo": scenario.io_nodes * base["fifo"]},
        )

    return figure("fig-3-8-windows", [panel("read"), panel("write")])


def _tables_3_6_and_3_7(choices: Choices) -> Figure:
    names = ("oracle", "static", *KINDS)
    io_nodes = sorted({n for _, _, n in choices.increased})
    labels = [str(n) for n in io_nodes]
    panels = []
    for word, counts in (("improved", choices.increased), ("worsened", choices.decreased)):
        for does in ("read", "write"):
            heights = {SHORT[name]: [counts[does, name, n] for n in io_nodes] for name in names}
            title = f"{does}s {word}"
            panels.append(bars(title, labels, heights, x="I/O nodes", y="observations", key=True))
    return figure("tables-3-6-3-7-choices", panels, columns=2, count=choices.observations)


def _x(learning: Learning) -> list[float]:
    return [learning.bin * (k + 1) for k in range(learning.precision.shape[1])]


def _series(label: str, learning: Learning, letter: str, *, precise: bool = True) -> Series:
    k = learning.scenarios.index(letter)
    values = learning.precision if precise else learning.performance
    return Series(label=label, x=_x(learning), y=values[k].tolist())


def _panel(title: str, series: list[Series], y: str = "precision") -> Curves:
    return curves(title, "observations", y, series, bottom=0, top=1)


def _by_letter(offline: Offline, policies: Mapping[str, Learning]) -> list[Curves]:
    """Return one panel per access pattern with one curve per policy."""
    return [
        _panel(letter, [_series(name, each, letter) for name, each in policies.items()])
        for letter in offline.six
    ]


def _letters(offline: Offline) -> str:
    return "; ".join(f"{letter}: {one.name}" for letter, one in offline.six.items()) + "."


def _learning(offline: Offline) -> Iterator[Figure]:
    panels = _by_letter(offline, {f"epsilon {e:g}": each for e, each in offline.epsilons.items()})
    letters, repetitions = _letters(offline), offline.repetitions
    yield figure("fig-4-3-epsilon", panels, columns=3, repetitions=repetitions, letters=letters)

    learning, y = offline.interleaved, "share of the best window's"
    precision, performance = (
        [_series(letter, learning, letter, precise=precise) for letter in offline.six]
        for precise in (True, False)
    )
    panels = [_panel("precision", precision), _panel("performance", performance, y=y)]
    yield figure("fig-4-4-interleaved", panels, letters=_letters(offline))

    ours = {name: offline.policies[name] for name in ("ucb1", OURS)}
    panels = _by_letter(offline, {"epsilon 0.1": offline.epsilons[0.10], **ours})
    letters, repetitions = _letters(offline), offline.repetitions
    yield figure("fig-4-5-ucb1", panels, columns=3, repetitions=repetitions, letters=letters)

    series = [
        Series(label=name, x=_x(each), y=each.performance.mean(axis=0).tolist())
        for name, each in offline.changed.items()
    ]
    y = "share of the best window's performance"
    yield figure(
        "changing-world",
        [curves("mean over scenarios", "observations", y, series, lines={"0.95": 0.95})],
        count=len(offline.mattering),
        changes_at=CHANGES_AT,
        again_within=AGAIN_WITHIN,
    )
