"""The claims of every study as data: one TOML file per study, one table per claim.

A table has the claim's text, who makes it (`by`; the file's own `by` if it has none), what the
paper says and the rule by which the claim is judged, with what we know about the reason where our
result differs. The study computes our result and whether the claim holds, and calls

    claim = claims.load("io-sets")
    claim("fig-4-time", f"{seconds:.2f} s", seconds < 5, limit=5)

where keyword arguments fill in the `{limit}` of the texts.
"""

from collections.abc import Mapping
from functools import cache
from importlib import resources

import msgspec
import numpy as np

from penstock.report.findings import Claim, ClaimReference
from penstock.report.papers import Claimant


class ClaimText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A claim before it is judged; its texts may have fields in braces."""

    claim: str
    paper: str
    rule: str
    by: Claimant
    differs: str = ""
    """Follows the rule where the claim does not hold."""


class ClaimTable:
    """The claims of one study by their ids; a call judges one of them."""

    def __init__(self, texts: Mapping[str, ClaimText]) -> None:
        self.texts = texts

    def __call__(
        self,
        name: str,
        ours: str,
        holds: bool | np.bool_,
        repeats: ClaimReference | None = None,
        **fields: object,
    ) -> Claim:
        """Return a claim with our result."""
        text = self.texts[name]
        claim, paper, rule, differs = (
            template.format(**fields)
            for template in (text.claim, text.paper, text.rule, text.differs)
        )
        return Claim(
            claim=claim,
            by=text.by,
            paper=paper,
            ours=ours,
            holds=bool(holds),
            why=f"Rule: {rule}" + (f" {differs}" if differs and not holds else ""),
            repeats=repeats,
        )


@cache
def load(study: str) -> ClaimTable:
    """Return the claims of a study."""
    file = resources.files(__name__) / f"{study}.toml"
    content = msgspec.toml.decode(file.read_bytes())
    by = content.pop("by")
    texts = {name: {"by": by} | table for name, table in content.items()}
    return ClaimTable(msgspec.convert(texts, dict[str, ClaimText]))
