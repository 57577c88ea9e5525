"""Advice: the paper's gain turned the right way round, moves counted, guesses not taken."""

import math
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from penstock.errors import InputError
from penstock.learn.write_models import machine as machines
from penstock.learn.write_models.advice import Choice, advise, gain, settings
from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.prediction import Physical, Prediction
from penstock.model.write import Write

TITAN = machines.load("titan")
WRITE = Write(nodes=64, cores=16, burst=1e8)


def prediction(seconds: float, factor: float = 1.25, outside: tuple[str, ...] = ()) -> Prediction:
    return Prediction(
        seconds=seconds, low=seconds / factor, high=seconds * factor, coverage=0.9, outside=outside
    )


@dataclass
class FixedModel:
    """A model that knows some writes by their number of bursts, and takes 100 s for all others."""

    by_bursts: dict[int, Prediction]
    machine: Machine = field(default=TITAN)

    def predict(self, write: Write) -> Prediction:
        return self.by_bursts.get(write.bursts, prediction(100.0))


def choice(write: Write, seconds: float, factor: float = 1.25) -> Choice:
    return Choice(write=write, prediction=prediction(seconds, factor))


OTHER = Write(nodes=32, cores=1, burst=3.2e9)


def test_the_gain_is_that_of_trap_11() -> None:
    """t = 48, t' = 50, t'' = 27: e = 2, the candidate should take 25 s.

    That e stays is assumed: the interval goes on to where it would be if e did not.
    """
    result = gain(choice(WRITE, 50.0), choice(OTHER, 27.0), measured=48.0)
    assert result.expected == pytest.approx(48 / 25)
    assert result.low == pytest.approx(48 / (27 * 1.25))
    assert result.high == pytest.approx(48 / (27 / 1.25 - 2))


def test_an_error_the_other_way_widens_the_interval_the_other_way() -> None:
    """t = 52, t' = 50: e = -2."""
    result = gain(choice(WRITE, 50.0), choice(OTHER, 27.0), measured=52.0)
    assert result.expected == pytest.approx(52 / 29)
    assert result.low == pytest.approx(52 / (27 * 1.25 + 2))
    assert result.high == pytest.approx(52 / (27 / 1.25))


@pytest.mark.parametrize("measured", [39.9, 62.6, 600.0])
def test_a_measurement_that_the_model_rules_out_leaves_the_ratio(measured: float) -> None:
    """An error as large as that says that the model is wrong, not by how much it will be."""
    result = gain(choice(WRITE, 50.0), choice(OTHER, 25.0), measured)
    assert result == gain(choice(WRITE, 50.0), choice(OTHER, 25.0))
    model = FixedModel({1024: prediction(50.0), 16: prediction(25.0)})
    assert advise(model, WRITE, measured=measured, gather=1e12).contradicted
    assert not advise(model, WRITE, measured=55.0, gather=1e12).contradicted


@pytest.mark.parametrize("measured", [None, 45.0, 60.0, 600.0])
def test_now_over_then_is_the_gain(measured: float | None) -> None:
    model = FixedModel({1024: prediction(50.0), 16: prediction(25.0)})
    advice = advise(model, WRITE, measured=measured, gather=1e9)
    assert advice.best.moving > 1
    now = advice.now.seconds if measured is None else measured
    seconds, low, high = advice.outcome()
    assert now / seconds == pytest.approx(advice.gain.expected)
    assert low < seconds < high


def test_an_error_larger_than_the_candidate_leaves_the_ratio() -> None:
    result = gain(choice(WRITE, 50.0, 10), choice(OTHER, 25.0), measured=10.0)
    assert result.expected == pytest.approx(2.0)


def test_without_a_measurement_two_errors_meet() -> None:
    result = gain(choice(WRITE, 50.0), choice(OTHER, 25.0))
    wide = math.sqrt(2) * math.log(1.25)
    assert result.expected == pytest.approx(2.0)
    assert math.log(result.expected / result.low) == pytest.approx(wide)
    assert math.log(result.high / result.expected) == pytest.approx(wide)


def test_the_best_is_taken_and_its_way_is_counted() -> None:
    model = FixedModel({1024: prediction(50.0), 16: prediction(30.0)})
    silent = msgspec.structs.replace(
        TITAN, stage=tuple(s for s in TITAN.stage if s.kind != "node"), cross=()
    )
    free = advise(FixedModel(model.by_bursts, silent), WRITE)
    assert (free.best.write.bursts, free.best.moving) == (16, 0.0)
    assert not free.moves_counted
    counted = advise(model, WRITE, gather=1e9)
    nodes = counted.best.write.nodes
    assert counted.best.write.bursts == 16
    assert nodes == 16, "sixteen nodes take in more at once than one with sixteen processes"
    assert counted.best.moving == pytest.approx((WRITE.bytes / nodes - 1.6e9) / 1e9)
    slow = advise(model, WRITE, gather=1e8)
    assert slow.best.write == WRITE, "48 s to move what then takes 20 s less"
    assert not slow.worth_it


def test_advice_that_may_be_slower_says_so() -> None:
    """A gain is a gamble if its interval goes below 1, and only then."""
    unsure = advise(FixedModel({1024: prediction(50.0), 16: prediction(40.0)}), WRITE, gather=1e12)
    assert unsure.worth_it
    assert unsure.gain.low < 1 < unsure.gain.expected
    assert unsure.may_be_slower
    sure = advise(FixedModel({1024: prediction(50.0), 16: prediction(20.0)}), WRITE, gather=1e12)
    assert sure.worth_it
    assert not sure.may_be_slower


def test_what_is_kept_as_it_is_cannot_be_slower() -> None:
    kept = advise(FixedModel({}), WRITE)
    assert not kept.worth_it
    assert not kept.may_be_slower


def test_what_the_model_has_seen_less_of_is_not_advised() -> None:
    guess = prediction(1.0, 3, ("burst size 5.96 GiB, seen 977 KiB to 954 MiB",))
    advice = advise(
        FixedModel({1024: prediction(50.0), 16: guess, 32: prediction(40.0)}), WRITE, gather=1e12
    )
    assert advice.best.write.bursts == 32
    assert advice.rejected > 0


def test_a_write_outside_is_advised_what_is_less_so() -> None:
    now, other = (
        prediction(50.0, 3, ("nodes 64, seen 1 to 8",)),
        prediction(5.0, 2, ("nodes 16, seen 1 to 8",)),
    )
    advice = advise(FixedModel({1024: now, 16: other}), WRITE, gather=1e12)
    assert advice.best.write.bursts == 16


def test_a_measured_time_is_what_the_advice_divides() -> None:
    model = FixedModel({1024: prediction(50.0), 16: prediction(30.0)})
    advice = advise(model, WRITE, measured=60.0, gather=1e12)
    seconds, _, slowest = advice.outcome()
    assert seconds == pytest.approx(40.0, rel=1e-3), "30 s and an error of 10 s"
    assert slowest == pytest.approx(30 * 1.25 + 10, rel=1e-3)
    assert advise(FixedModel({}), WRITE, measured=60.0).outcome() == (60.0, 60.0, 60.0)


@pytest.mark.parametrize("name", ["cetus", "titan"])
def test_the_description_never_advises_what_it_holds_to_be_slower(name: str) -> None:
    model = Physical(machine=machines.load(name))
    for shared in (False, True):
        write = Write(nodes=300, cores=16, burst=1e8, shared=shared)
        advice = advise(model, write)
        assert advice.best.seconds <= advice.now.seconds
        again = model.predict(advice.best.write)
        assert again.seconds == advice.best.prediction.seconds


@pytest.mark.parametrize(("name", "value"), [("measured", 0.0), ("gather", math.nan)])
def test_impossible_times_and_bandwidths_are_refused(name: str, value: float) -> None:
    with pytest.raises(InputError, match="give more than zero"):
        advise(FixedModel({}), WRITE, **{name: value})  # type: ignore[arg-type]


def test_hints_are_for_one_file_and_adios2_for_files_each() -> None:
    model = FixedModel({1024: prediction(50.0), 16: prediction(10.0)})
    each = settings(TITAN, advise(model, WRITE, gather=1e12), "out")
    assert each.hints == {}
    assert each.adios2 == {"NumAggregators": "16"}
    shared = Write(nodes=64, cores=16, burst=1e8, shared=True)
    advice = advise(model, shared, gather=1e12)
    typed = settings(TITAN, advice, "out", hints_file=Path("/my hints"))
    assert typed.hints["cb_nodes"] == "16"
    assert typed.hints["cb_buffer_size"] == f"{16 * 2**20}"
    assert typed.commands == ("export ROMIO_HINTS='/my hints'",), "Cray's cannot place aggregators"
    assert "cb_nodes 16\n" in typed.hints_file()
    assert settings(TITAN, advice, "out").commands == (), "a file that nobody wrote is not named"


@dataclass
class Wide:
    """A model to which only the number of a file's targets matters."""

    machine: Machine = field(default=TITAN)

    def predict(self, write: Write) -> Prediction:
        return prediction(100.0 / (write.stripe_count or 4))


def test_stripes_are_set_by_the_machines_command() -> None:
    shared = Write(nodes=64, cores=16, burst=1e9, shared=True)
    typed = settings(TITAN, advise(Wide(), shared), "out")
    assert typed.commands[0] == "lfs setstripe --stripe-size 1M --stripe-count 1008 out"
    assert typed.hints["striping_factor"] == "1008"
    assert typed.hints["striping_unit"] == f"{2**20}"
    assert typed.commands[1] == (
        f"export MPICH_MPIIO_HINTS='*:striping_factor=1008:striping_unit={2**20}'"
    )


def test_files_each_take_the_stripes_of_a_directory_that_is_there() -> None:
    """'lfs setstripe' makes a file of a path that does not exist."""
    typed = settings(TITAN, advise(Wide(), Write(nodes=64, cores=16, burst=1e9)), "my out")
    assert typed.commands[0] == "mkdir -p 'my out'"
    assert typed.commands[1].startswith("lfs setstripe")
    assert typed.commands[1].endswith(" 'my out'")


def test_nothing_is_typed_for_nothing() -> None:
    advice = advise(FixedModel({}), WRITE)
    typed = settings(TITAN, advice, "out")
    assert (typed.commands, typed.hints, typed.adios2) == ((), {}, {})
