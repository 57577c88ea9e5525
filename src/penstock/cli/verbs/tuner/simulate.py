"""penstock tuner simulate: how well a tuning policy learns from recorded rewards."""

from pathlib import Path
from typing import Any

import click
import numpy as np

from penstock import registry
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.verbs.tuner.show import read
from penstock.config.tuning import TuningSection
from penstock.data import windows
from penstock.errors import InputError
from penstock.sim.evaluate.bandits import Evaluation, Recorded

BINS = 10


@click.command(short_help="Simulate a tuning policy on measured rewards.")
@click.argument("file", metavar="[FILE.csv]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--policy",
    metavar="NAME",
    help="The tuning policy; by default that of --learned, or of the configuration's default.",
)
@click.option(
    "--learned",
    metavar="STATE.json",
    type=click.Path(path_type=Path),
    help="Start with what a live deployment has learned (state/tuning/POLICY.json).",
)
@click.option(
    "--observations",
    metavar="N",
    type=click.IntRange(BINS, 10_000),
    default=200,
    show_default=True,
    help="The number of choices per scenario.",
)
@click.option(
    "--repetitions",
    metavar="N",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="The number of simulations per scenario.",
)
@click.option(
    "--seed",
    metavar="N",
    type=int,
    default=1,
    show_default=True,
    help="The seed of random numbers.",
)
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
    """Simulate a policy that chooses windows of TWINS, on rewards that were measured with each.

    \b
    Examples:
      penstock tuner simulate                                        use the shipped rewards
      penstock tuner simulate windows.csv --policy thompson          use those of 'tuner measure'
      penstock tuner simulate --learned state/tuning/discounted-ucb.json

    Performance is the mean reward of the choices relative to the best fixed window, at the
    beginning (the first tenth) and at the end. With --learned the policy starts as it would live.
    """
    state, state_policy = (None, None) if learned is None else _window(learned)
    evaluation = Evaluation(
        policy=policy or state_policy or TuningSection().policy,
        observations=observations,
        repetitions=repetitions,
        seed=seed,
        learned=state,
    )
    registry.load("tuning", evaluation.policy)
    measured = windows.by_window(windows.shipped() if file is None else windows.read(file))
    if not measured:
        raise InputError(f"{file} has no scenario with all windows; measure it completely")
    # Deployments learn in bytes per second.
    rewards: Recorded = {
        scenario.name: {w: 2.0**20 * np.array(r) for w, r in each.items()}
        for scenario, each in measured.items()
    }
    contexts = {scenario.name: scenario.context for scenario in measured}
    learning = evaluation.alone(rewards, bin=observations // BINS, contexts=contexts)
    result = [
        {"scenario": name, "begin": float(each[0]), "end": float(each[-1])}
        for name, each in zip(learning.scenarios, learning.performance, strict=True)
    ]
    if as_json:
        emit_json({"policy": evaluation.policy, "learned": state is not None, "scenarios": result})
        return
    rows = [(str(one["scenario"]), f"{one['begin']:.3f}", f"{one['end']:.3f}") for one in result]
    begin, end = (float(learning.performance[:, k].mean()) for k in (0, -1))
    rows.append(("mean", f"{begin:.3f}", f"{end:.3f}"))
    title = f"{evaluation.policy}: reward relative to the best fixed window (measured, emulated)"
    emit_table(("scenario", "begin", "end"), rows, title=title)


def _window(path: Path) -> tuple[dict[str, Any], str]:
    """Return what a live deployment has learned of windows, and its policy."""
    content, _ = read(path)
    if "window" not in content["tuners"]:
        raise InputError(f"{path} has nothing on windows; use a state learned with --tune window")
    return content["tuners"]["window"], content["policy"]
