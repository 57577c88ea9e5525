"""The search over subsets of scales."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from learn.write_models import synthetic

from penstock.campaign.cells import Campaign, every, run
from penstock.campaign.cells import Cell as CampaignCell
from penstock.campaign.journal import Value
from penstock.errors import InputError
from penstock.learn.write_models.regressors import (
    GRIDS,
    PAPER_TECHNIQUES,
    Moments,
    add_moments,
    fit_moments,
)
from penstock.learn.write_models.training import Cell, Search

SEARCH = Search(synthetic.table(400, noise=0.1), seed=5)


def test_there_are_255_subsets_of_eight_scales_for_each_of_five() -> None:
    cells = list(SEARCH.cells())
    assert len(cells) == len(set(cells)) == 255 * 5


def test_a_fifth_of_every_scale_is_held_out() -> None:
    first, second = SEARCH.samples.split(seed=5)
    for scale in synthetic.SCALES:
        assert ((first.scales == scale).sum(), (second.scales == scale).sum()) == (40, 10)


@pytest.mark.parametrize("technique", ["lasso", "tree"])
def test_the_best_has_the_least_error_and_no_more_than_the_base(technique: str) -> None:
    some = [cell for cell in SEARCH.cells([technique]) if len(cell.scales) > 6]
    tried = [SEARCH.evaluate(cell) for cell in some]
    best = SEARCH.best(tried)[technique]
    base = next(one for one in tried if one.cell == SEARCH.base(technique))
    assert best.error == min(one.error for one in tried) <= base.error
    predicted = SEARCH.fit(best.cell, best.options).predict(SEARCH.held_out.matrix())
    assert np.mean((predicted - SEARCH.held_out.seconds) ** 2) == pytest.approx(best.error)


def test_a_cell_depends_on_itself_alone() -> None:
    cells = [Cell(technique=t, scales=(2, 16, 64)) for t in PAPER_TECHNIQUES]
    again = Search(synthetic.table(400, noise=0.1), seed=5)
    assert [SEARCH.evaluate(c) for c in cells] == [again.evaluate(c) for c in reversed(cells)][::-1]


@pytest.mark.parametrize("technique", ["linear", "ridge", "lasso"])
def test_options_share_the_decomposition_of_a_subset_and_are_fitted_as_alone(
    technique: str,
) -> None:
    """It was most of a search's time; the coefficients are those of moments made for each fit."""
    cell = Cell(technique=technique, scales=(4, 32, 128))
    search = Search(synthetic.table(400, noise=0.1), seed=5)
    shared = [search.fit(cell, options) for options in GRIDS[technique]]
    matrix, tested = search.training.matrix(), search.held_out.matrix()
    scales = [search.training.scales == scale for scale in cell.scales]
    for options, model in zip(GRIDS[technique], shared, strict=True):
        moments = (Moments.from_samples(matrix[s], search.training.seconds[s]) for s in scales)
        union = add_moments(moments)
        alone = fit_moments(technique, options, union)
        assert union.rows is union.rows
        assert model.predict(tested) == pytest.approx(alone.predict(tested), rel=1e-9)


class StopError(Exception):
    pass


def work(fails: float, cell: CampaignCell) -> list[dict[str, Value]]:
    if cell.x == fails:
        raise StopError
    tried = SEARCH.evaluate(Cell(technique=cell.scenario, scales=synthetic.SCALES[: int(cell.x)]))
    return [{"x": cell.x, "technique": cell.scenario, "option": tried.option, "mse": tried.error}]


def rows(out: Path, fails: float = 0.0) -> list[object]:
    cells = list(every("lasso", [1.0, 2.0, 3.0, 4.0], 1))
    whole = Campaign(
        study="s",
        version=1,
        size="quick",
        seed=5,
        cells=cells,
        work=partial(work, fails),
        alone=True,
    )
    out.mkdir(exist_ok=True)
    return list(run(whole, out).rows)


def test_a_search_that_was_interrupted_goes_on_to_the_same_end(tmp_path: Path) -> None:
    with pytest.raises(StopError):
        rows(tmp_path / "stopped", fails=3.0)
    assert rows(tmp_path / "stopped") == rows(tmp_path / "whole")


def test_too_few_samples_and_unknown_scales_are_said() -> None:
    with pytest.raises(InputError, match="10 samples are too few"):
        Search(synthetic.table(10), seed=1)
    with pytest.raises(InputError, match="has 3 nodes"):
        SEARCH.fit(Cell(technique="linear", scales=(3,)), {})
