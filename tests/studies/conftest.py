"""A study on few workloads, run once for all tests of its module."""

import pytest

from penstock.report.findings import Findings
from penstock.studies.campaign import Results, run
from penstock.studies.executors.local import local_workers


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    with local_workers() as executor:
        return run(request.module.small(), tmp_path_factory.mktemp("study"), executor=executor)


@pytest.fixture(scope="module")
def findings(request: pytest.FixtureRequest, results: Results) -> Findings:
    found: Findings = request.module.STUDY.findings(results)
    return found
