"""Scores: the paper's relative error, shares and coverage, on errors that are known."""

from dataclasses import dataclass, field

import pytest

from penstock.errors import InputError
from penstock.learn.write_models import machine as machines
from penstock.learn.write_models.evaluation import evaluate, repeatability
from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.prediction import Prediction
from penstock.learn.write_models.samples import Sample
from penstock.model.write import Write

TITAN = machines.load("titan")


@dataclass
class Constant:
    """Ten seconds for everything, give or take 2.5; it has not seen 64 nodes."""

    machine: Machine = field(default=TITAN)

    def predict(self, write: Write) -> Prediction:
        outside = ("nodes",) if write.nodes == 64 else ()
        return Prediction(seconds=10.0, low=7.5, high=12.5, coverage=0.9, outside=outside)


def sample(nodes: int, *times: float) -> Sample:
    write = Write(nodes=nodes, cores=1, burst=1e6)
    return Sample(machine="titan", source="simulated", write=write, times=times)


SAMPLES = [sample(1, 10.0), sample(1, 8.0, 10.0), sample(64, 8.0), sample(64, 20.0)]


def test_errors_are_relative_to_what_was_measured() -> None:
    """Predicted 10 of 10, 9, 8 and 20: errors of 0, 0.11, 0.25 and 0.5."""
    evaluation = evaluate(Constant(), SAMPLES)
    assert evaluation.within == {0.2: 0.5, 0.3: 0.75}
    assert evaluation.median_error == pytest.approx((1 / 9 + 1 / 4) / 2)
    assert (evaluation.covered, evaluation.coverage) == (0.75, 0.9)
    assert (evaluation.samples, evaluation.outside) == (4, 2)


def test_samples_of_another_machine_are_refused() -> None:
    with pytest.raises(InputError, match="of 'titan', the model of 'cetus'"):
        evaluate(Constant(machine=machines.load("cetus")), SAMPLES)
    with pytest.raises(InputError, match="no samples"):
        evaluate(Constant(), [])


def test_identical_samples_tell_each_other() -> None:
    """8, 10 and 20 s: by their median, 10, errors of 1/4, 0, 1/2; by the others' 7/8, 2/5, 11/20.

    A write that was not repeated says nothing.
    """
    alike = [sample(2, 8.0), sample(2, 10.0), sample(2, 20.0), sample(4, 100.0)]
    result = repeatability(alike)
    assert (result.own, result.others) == pytest.approx((1 / 4, 11 / 20))
    assert result.samples == 3
    with pytest.raises(InputError, match="no write was repeated"):
        repeatability(alike[2:])
