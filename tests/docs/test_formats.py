"""Each file format has a page, and the fields that it lists are those that the code reads."""

import inspect
import re

import msgspec
import pytest
from docs import pages

from penstock.campaign.journal import Entry
from penstock.config import section_types, values
from penstock.learn.detection import samples as observations
from penstock.learn.detection.model import Model as PatternModel
from penstock.learn.write_models import samples
from penstock.learn.write_models.model import Model as WriteModel
from penstock.live.http.metrics import ControllerMetrics
from penstock.live.protocol import tokens
from penstock.live.protocol.state_directory import StateDirectory
from penstock.records import Header
from penstock.report import tables
from penstock.sim.formats import jobs_file, npz_format, table_formats
from penstock.sim.metrics import Metrics

PAGES = pages.written() | pages.from_code()


def listed(page: str) -> set[str]:
    """Return the names in the first columns of a page's tables."""
    rows = re.findall(r"^\| (`[^|]*?) \|", PAGES[f"docs/formats/{page}.md"], re.M)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


@pytest.mark.parametrize(
    ("page", "fields"),
    [
        ("jobs-files", jobs_file._Job.__struct_fields__),
        ("csv-workloads", table_formats.COLUMNS),
        ("npz-workloads", npz_format.ARRAYS),
        ("observation-files", observations.RUN),
        ("samples", samples.COLUMNS),
        ("pattern-model-files", PatternModel.__struct_encode_fields__),
        ("write-model-files", WriteModel.__struct_encode_fields__),
        ("record-files", Header.__struct_fields__),
        ("study-results", (*Entry.__struct_fields__, *tables.COLUMNS)),
    ],
)
def test_a_page_lists_the_fields_that_are_read(page: str, fields: object) -> None:
    assert isinstance(fields, tuple | dict)
    known = set(fields) - {"format", "version"}
    missing = known - listed(page)
    assert not missing


def test_the_state_directory_is_told_file_by_file() -> None:
    listing = " ".join(listed("state-directory"))
    places = {path.name for path in vars(StateDirectory()).values() if hasattr(path, "name")}
    places -= {StateDirectory().folder.name}
    for place in places:
        assert place.partition(".db")[0] in listing, place


def test_roles_and_lengths_of_tokens_are_the_code_s() -> None:
    page = PAGES["docs/formats/token-file.md"]
    assert all(f"`{role}`" in page for role in tokens.ROLES)
    assert f"{tokens.MIN_TOKEN_LENGTH} characters or more" in page
    assert f"{tokens.MAX_FILE_BYTES >> 10} KiB" in page


def test_every_key_of_the_configuration_is_in_the_reference() -> None:
    page = PAGES["docs/reference/configuration-keys.md"]
    assert {"site", "live", "io-node", "tuning"} <= set(section_types())
    for section, kind in section_types().items():
        part = page.partition(f"## [{section}]")[2].partition("\n## ")[0]
        for key, value in values(kind()).items():
            assert f"| `{key}` |" in part
            assert value is None or msgspec.json.encode(value).decode() in part


def test_metrics_are_defined_by_the_code_alone() -> None:
    """The table that people read says what stands with the field in the code."""
    fields = [f for f in Metrics.__dataclass_fields__ if f != "window"]
    source = " ".join(inspect.getsource(Metrics).split())
    rows = dict(
        re.findall(r"^\| `(\w+)` \| ([^|]+) \|", PAGES["docs/reference/metrics/index.md"], re.M)
    )
    assert set(rows) == set(fields)
    for name, definition in rows.items():
        formula = definition.strip()
        assert formula.lower() in source.lower(), name
        page = PAGES[f"docs/reference/metrics/{name.replace('_', '-')}.md"]
        assert formula.lower() in page.lower()


def test_every_metric_of_a_scrape_has_a_page() -> None:
    """Names in the code of the metrics, by its text: none is left out of what is described."""
    source = inspect.getsource(inspect.getmodule(ControllerMetrics) or ControllerMetrics)
    named = set(re.findall(r'(?:_total|_gauge|_counters)\(\s*"(\w+)"', source))
    named |= {n.removeprefix("penstock_") for n in re.findall(r'"(penstock_\w+)"', source)}
    assert len(named) > 15
    pages_there = {page for page in PAGES if page.startswith("docs/reference/metrics/penstock_")}
    for name in named:
        assert any(f"/penstock_{name}" in page for page in pages_there), name


def test_the_list_of_live_metrics_is_complete() -> None:
    """Every family of `/metrics` has a row, and no row is of a metric that is gone."""
    from made import prometheus  # noqa: PLC0415 - the pages' folder is on the path by then

    page = PAGES["docs/reference/http-api.md"]
    names = {prometheus.name(family) for family in prometheus.families()}
    listed = set(re.findall(r"`(penstock_[a-z_]+)", page.split("## Metrics")[1]))
    assert {name for name in names if name.startswith("penstock_")} == listed
