"""A year of runs on Cori and Mira (TOKIO): what a model reaches beside what identical runs do."""

import numpy as np
import published_data
import pytest

from penstock.errors import InputError
from penstock.learn.write_models import interference
from penstock.learn.write_models.interference import Run
from penstock.learn.write_models.sources import tokio


@pytest.mark.slow
@published_data.either
@pytest.mark.parametrize("machine", ["cori", "mira"])
def test_the_error_stands_beside_the_floor(machine: str, *, full: bool) -> None:
    """Load measured during a run explains it; it is no prediction, as it has the run in it.

    No model loses more than a fifth against the usual bandwidth of the configuration, and none is
    far below the floor, which would mean that it had seen the answer.
    """
    path = published_data.path(f"tokio-{machine}.csv", full=full)
    runs = interference.write_runs(tokio.read(path))
    columns = sorted({name for run in runs for name in run.load})
    known = [name for name in columns if not name.startswith(tokio.DURING)]
    before = interference.errors(runs, known, seed=1)
    explained = interference.errors(runs, columns, seed=1)
    print(machine, len(runs), before, explained)
    assert before.tested > (300 if full else 100)
    assert before.pairs > (100 if full else 50)
    for one in (before, explained):
        assert 0.01 < one.floor < 0.2
        assert 0.5 * one.floor <= one.model <= 1.2 * one.usual
    # Node hours of neighbours, while the run ran, tell how long it ran: 0.084 on Cori with them.
    assert before.model >= 0.9 * before.usual


def synthetic_runs(count: int, *, noise: float) -> list[Run]:
    rng = np.random.default_rng(2)
    runs = []
    for k in range(count):
        load = float(rng.uniform(0, 1))
        runs.append(
            Run(
                configuration=(str(k % 2),),
                began=3600.0 * k,
                bandwidth=1000.0 * float(np.exp(-load + rng.normal(0, noise))),
                load={"load": load, "nothing": float(rng.normal())},
            )
        )
    return runs


def test_a_load_that_decides_is_found_and_one_that_does_not_is_not() -> None:
    runs = synthetic_runs(800, noise=0.01)
    assert interference.errors(runs, ["load"], seed=1).model < 0.03
    blind = interference.errors(runs, ["nothing"], seed=1)
    assert blind.model > 0.15
    assert blind.floor == pytest.approx(0.29 / 2**0.5, abs=0.05), "two uniform loads differ by 0.29"


def test_too_few_runs_and_none_to_compare_are_refused() -> None:
    with pytest.raises(InputError, match="10 runs are too few"):
        interference.errors(synthetic_runs(10, noise=0.1), ["load"], seed=1)
