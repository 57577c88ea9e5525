"""Chapter 4 of J. L. Bez's thesis: the window of TWINS, learnt while I/O nodes serve.

Rewards are ours: real I/O nodes, real processes, on an emulated file system. In small the study
draws from those that come with the package and runs a few minutes of real jobs; --full measures the
thesis' grid again and runs for hours.
"""

from functools import partial

from penstock.campaign.cells import Cell, Results
from penstock.campaign.sizes import FULL, Size
from penstock.learn.detection import samples
from penstock.live.measure import window_survey
from penstock.report.findings import Findings
from penstock.studies.study import Study
from penstock.studies.texts import findings_of
from penstock.studies.tuning import (
    learning,
    learning_figures,
    measured,
    real_job_figures,
    real_jobs,
)
from penstock.studies.tuning.measured import SIZES, Measured
from penstock.studies.tuning.offline import Choices, Detectors, Offline

VERSION = 3
OBSERVATIONS = 400


def cells_of(size: Size) -> list[Cell]:
    """Return what is to be measured: in small, real jobs only."""
    names = [f"{measured.ONLINE}{policy}" for policy in measured.POLICIES]
    names += [measured.FIXED, measured.MADBENCH, measured.OVERHEAD, measured.DECISION]
    cells = [Cell(scenario=name, x=0, workload=0) for name in names]
    if size == FULL:
        cells += [
            Cell(scenario=phase.name, x=float(ranks), workload=n)
            for phase in window_survey.FULL.phases()
            for ranks in window_survey.FULL.processes
            for n in window_survey.FULL.io_nodes
        ]
    else:
        cells.append(Cell(scenario=measured.SHIPPED, x=0, workload=0))
    return cells


def findings(results: Results) -> Findings:
    """Return the claims and figures; what is learnt from recorded rewards is learnt here."""
    measurements = Measured(results.rows)
    seed, amounts = results.campaign.seed, SIZES[results.campaign.size]
    offline = Offline(
        measurements.rewards, observations=OBSERVATIONS, repetitions=amounts.draws, seed=seed
    )
    detectors = Detectors.train(amounts.trees, seed)
    choices, held_out = (
        Choices(offline.means, some, detectors.detect)
        for some in (samples.shipped(), detectors.held_out)
    )
    return findings_of(
        "tuning",
        claims=[*learning.claims(offline, choices, held_out), *real_jobs.claims(measurements)],
        figures=[
            *learning_figures.figures(offline, choices),
            *real_job_figures.figures(measurements),
        ],
        shipped="" if results.campaign.size == FULL else "; rewards come with the package",
        provenance=(
            ("rewards", f"{len(offline.rewards)} scenarios x 7 windows, measured, emulated"),
            ("offline", f"{amounts.draws} repetitions of {OBSERVATIONS} observations, drawn"),
            ("online", "16 processes, 4 I/O nodes, a choice every 0.25 s"),
        ),
    )


STUDY = Study(
    name="tuning",
    title="The window of TWINS, learnt at run time (Bez, thesis, Ch. 4): drawn and measured",
    version=VERSION,
    cells=cells_of,
    run_cell=lambda size, seed: partial(measured.run_cell, size=SIZES[size], seed=seed),
    findings=findings,
    alone=True,
)
