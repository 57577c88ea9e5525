"""A study on few workloads, run once for all tests of its module."""

from pathlib import Path

import pytest
from shared import locked, studies_folder

from penstock.campaign.cells import Campaign, Results, run
from penstock.campaign.executors.local import local_workers
from penstock.report.findings import Findings


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    campaign: Campaign = request.module.small()
    name = request.module.STUDY.name
    if campaign.header != request.module.STUDY.campaign(size="quick", seed=0).header:
        return ran(campaign, tmp_path_factory.mktemp("study"))
    # Its cells are those of the pages' commands: whoever comes first computes them.
    folder = studies_folder(tmp_path_factory)
    with locked(folder / f"{name}.lock"):
        done = folder / name
        return ran(campaign, done if done.exists() else folder / f"{name}.part")


def ran(campaign: Campaign, folder: Path) -> Results:
    folder.mkdir(exist_ok=True)
    with local_workers() as executor:
        return run(campaign, folder, executor=executor)


@pytest.fixture(scope="module")
def findings(request: pytest.FixtureRequest, results: Results) -> Findings:
    result: Findings = request.module.STUDY.findings(results)
    return result
