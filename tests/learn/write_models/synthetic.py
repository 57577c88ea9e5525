"""Made-up samples of Titan: times of a known law, with noise."""

from collections.abc import Sequence

import numpy as np

from penstock.learn.write_models import machine
from penstock.learn.write_models.dataset import Dataset
from penstock.learn.write_models.parameters import parameters
from penstock.learn.write_models.samples import Sample
from penstock.model.write import Write

TITAN = machine.load("titan")
SCALES = (1, 2, 4, 8, 16, 32, 64, 128)


def seconds(write: Write) -> float:
    """The law: a latency, the busiest OST at 400 MB/s, the network at 20 GB/s."""
    values = parameters(TITAN, write)
    return 1.0 + values["s_ost"] / 4e8 + write.bytes / 2e10


def writes(count: int, scales: Sequence[int] = SCALES, *, seed: int = 1) -> list[Write]:
    rng = np.random.default_rng(seed)
    return [
        Write(
            nodes=int(scales[k % len(scales)]),
            cores=int(rng.integers(1, 17)),
            burst=float(2 ** rng.uniform(22, 32)),
            stripe_count=int(rng.integers(1, 65)),
        )
        for k in range(count)
    ]


def table(
    count: int = 160, scales: Sequence[int] = SCALES, *, noise: float = 0.0, seed: int = 1
) -> Dataset:
    rng = np.random.default_rng(seed)
    return Dataset.from_samples(
        TITAN,
        [
            Sample(
                machine="titan",
                source="made up",
                write=write,
                times=(seconds(write) * float(rng.lognormal(0, noise)),),
            )
            for write in writes(count, scales, seed=seed)
        ],
    )
