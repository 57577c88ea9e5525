"""Titles and captions of every study's figures as data: one TOML file per study.

A study draws the panels and calls

    figure = captions.load("io-sets")
    figure("figure-8", panels, workloads=20)

where keyword arguments fill in the `{workloads}` of the texts.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

import msgspec

from penstock.report.findings import Figure, Panel


class Caption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The texts of a figure, and what it rests on."""

    title: str
    caption: str
    source: str = "simulated"


class CaptionTable:
    """The captions of one study by figure; a call makes the figure."""

    def __init__(self, texts: Mapping[str, Caption]) -> None:
        self.texts = texts

    def __call__(
        self,
        key: str,
        panels: Sequence[Panel],
        *,
        name: str = "",
        stacked: bool = False,
        columns: int = 0,
        **fields: object,
    ) -> Figure:
        """Return a figure; `name` is its file's, where several figures share a caption."""
        text = self.texts[key]
        return Figure(
            name=name or key,
            title=text.title.format(**fields),
            caption=text.caption.format(**fields),
            panels=panels,
            stacked=stacked,
            columns=columns,
            source=text.source,
        )


@cache
def load(study: str) -> CaptionTable:
    """Return the captions of a study."""
    file = resources.files(__name__) / f"{study}.toml"
    return CaptionTable(msgspec.toml.decode(file.read_bytes(), type=dict[str, Caption]))
