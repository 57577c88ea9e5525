"""What a study is: a campaign to run, and the findings its results support."""

from typing import Protocol

from penstock.campaign.cells import Campaign, Results
from penstock.campaign.sizes import Size
from penstock.report.findings import Findings


class Study(Protocol):
    """An evaluation that can be asked for by name."""

    name: str
    title: str

    def campaign(self, *, size: Size, seed: int) -> Campaign:
        """Return the cells to run."""
        ...

    def findings(self, results: Results) -> Findings:
        """Return what the results say."""
        ...
