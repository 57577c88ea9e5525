"""A study on few workloads, run once for all tests of its module."""

import pytest

from penstock.campaign.cells import Results, run
from penstock.campaign.executors.local import local_workers
from penstock.report.findings import Findings


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    with local_workers() as executor:
        return run(request.module.small(), tmp_path_factory.mktemp("study"), executor=executor)


@pytest.fixture(scope="module")
def findings(request: pytest.FixtureRequest, results: Results) -> Findings:
    result: Findings = request.module.STUDY.findings(results)
    return result
