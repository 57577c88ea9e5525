"""penstock tuner simulate: how well a policy learns, on rewards that were measured before."""

from pathlib import Path
from typing import Any

import click
import numpy as np

from penstock import registry
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.verbs.tuner.show import read
from penstock.errors import InputError

BINS = 10


@click.command(short_help="Let a policy learn from measured rewards.")
@click.argument("file", metavar="[FILE.csv]", required=False, type=click.Path(path_type=Path))
@click.option("--policy", metavar="NAME", help="Of tuning; else the learned state's, or the usual.")
@click.option(
    "--learned",
    metavar="STATE.json",
    type=click.Path(path_type=Path),
    help="Begin with what a live deployment has learnt (state/tuning/POLICY.json).",
)
@click.option(
    "--observations",
    metavar="N",
    type=click.IntRange(BINS, 10_000),
    default=200,
    show_default=True,
    help="Of each scenario.",
)
@click.option("--repetitions", type=click.IntRange(1, 1000), default=5, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
@json_option
def simulate(
    *,
    file: Path | None,
    policy: str | None,
    learned: Path | None,
    observations: int,
    repetitions: int,
    seed: int,
    as_json: bool,
) -> None:
    """Let a policy choose windows of TWINS; each choice draws one of the rewards measured with it.

    \b
    Examples:
      penstock tuner simulate                                        the rewards that are shipped
      penstock tuner simulate windows.csv --policy thompson          those of 'tuner measure'
      penstock tuner simulate --learned state/tuning/discounted-ucb.json

    Performance is the mean reward of the choices as a part of the best fixed window's, at the
    begin (the first tenth) and at the end. With --learned the policy begins as it would live.
    """
    from penstock.config.tuning import TuningSection  # noqa: PLC0415 - --help stays quick
    from penstock.data import windows  # noqa: PLC0415
    from penstock.sim.evaluate.bandits import Evaluation, Recorded  # noqa: PLC0415

    known, of = (None, None) if learned is None else _window(learned)
    evaluation = Evaluation(
        policy=policy or of or TuningSection().policy,
        observations=observations,
        repetitions=repetitions,
        seed=seed,
        learned=known,
    )
    registry.load("tuning", evaluation.policy)
    found = windows.by_window(windows.shipped() if file is None else windows.read(file))
    if not found:
        raise InputError(f"{file} has no scenario with all windows; measure it whole")
    # What deployments learn is in bytes a second.
    rewards: Recorded = {
        scenario.name: {w: 2.0**20 * np.array(r) for w, r in each.items()}
        for scenario, each in found.items()
    }
    contexts = {scenario.name: scenario.context for scenario in found}
    learning = evaluation.alone(rewards, bin=observations // BINS, contexts=contexts)
    result = [
        {"scenario": name, "begin": float(each[0]), "end": float(each[-1])}
        for name, each in zip(learning.scenarios, learning.performance, strict=True)
    ]
    if as_json:
        emit_json({"policy": evaluation.policy, "learned": known is not None, "scenarios": result})
        return
    rows = [(str(one["scenario"]), f"{one['begin']:.3f}", f"{one['end']:.3f}") for one in result]
    begin, end = (float(learning.performance[:, k].mean()) for k in (0, -1))
    rows.append(("mean", f"{begin:.3f}", f"{end:.3f}"))
    title = f"{evaluation.policy}: part of the best fixed window's reward (measured, emulated)"
    emit_table(("scenario", "begin", "end"), rows, title=title)


def _window(path: Path) -> tuple[dict[str, Any], str]:
    """Return what a live deployment has learnt of windows, and its policy."""
    told, _ = read(path)
    if "window" not in told["tuners"]:
        raise InputError(f"{path} knows nothing of windows; it was learnt with --tune window")
    return told["tuners"]["window"], told["policy"]
