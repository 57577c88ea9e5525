"""Which tuner learns best on synthetic rewards: the table of docs/live/tuning.md, "Which one".

    python benchmarks/bandits.py [--seed N] [--repetitions N]

Nothing here is measured. Figures are shares of the performance of the best fixed value; those of
one seed are the same on every machine.
"""

import argparse
import sys
from pathlib import Path

from penstock.sim.evaluate.bandits import Evaluation

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from sim.evaluate.synthetic_rewards import improve_worst, reverse_ranks, rewards

POLICIES = (
    "epsilon-greedy",
    "decaying-epsilon",
    "ucb1",
    "scaled-ucb1",
    "thompson",
    "sliding-ucb",
    "discounted-ucb",
)
CHANGED, LATER = 250, 150
"""Observations until the rewards change, and until the figure after that."""


def main() -> None:
    """Print one row per policy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=77, help="of the scenarios; 0 chose defaults")
    parser.add_argument("--repetitions", type=int, default=50)
    options = parser.parse_args()
    world = rewards(seed=options.seed)
    print(
        f"{len(world)} synthetic scenarios, seed {options.seed}, {options.repetitions} repetitions"
    )
    print(
        "| policy | >= 0.97 after 200 | mean then | >= 0.98 after 400 | mean then | precision",
        end="",
    )
    print(" | ranks reversed, +150 | worst improved, +150 |")
    for policy in POLICIES:
        learning = Evaluation(policy=policy, repetitions=options.repetitions).alone(world)
        early, late = learning.after(200), learning.after(400)
        cells = [f"{(early >= 0.97).mean():.0%}", f"{early.mean():.3f}"]
        cells += [f"{(late >= 0.98).mean():.0%}", f"{late.mean():.3f}"]
        cells.append(f"{learning.precision[:, -1].mean():.2f}")
        changing = Evaluation(
            policy=policy,
            observations=CHANGED + LATER,
            repetitions=max(1, round(0.6 * options.repetitions)),
        )
        for change in (reverse_ranks, improve_worst):
            learnt = changing.changing(world, change(world), at=CHANGED)
            cells.append(f"{learnt.after(CHANGED + LATER).mean():.3f}")
        print(f"| `{policy}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
