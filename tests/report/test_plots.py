"""Figures: every policy told apart, every curve named, and the same file from the same records."""

from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from penstock.registry import POLICIES
from penstock.report.findings import (
    Bars,
    Cloud,
    Curves,
    Dots,
    Figure,
    Lanes,
    Reference,
    Scatter,
    Series,
    Stretch,
)
from penstock.report.plots import draw, save, spread
from penstock.report.style import LOOKS, look


def curves(**options: object) -> Curves:
    series = [
        Series(label=label, x=[1, 10, 100], y=[y, y, y], low=[y - 1] * 3, high=[y + 1] * 3)
        for label, y in (("set-10", 5.0), ("fair-share", 5.01), ("set-10, learned", 5.02))
    ]
    given = {"title": "T", "x": "x", "y": "y", "series": series} | options
    return Curves(**given)  # type: ignore[arg-type]


def figure(*panels: object, stacked: bool = False) -> Figure:
    return Figure(
        name="one",
        title="A figure",
        caption="simulated",
        panels=panels,  # type: ignore[arg-type]
        stacked=stacked,
    )


DOTS = Dots(
    title="Utilization",
    labels=["set-10", "fair-share"],
    value=[0.97, 0.95],
    low=[0.96, 0.94],
    high=[0.98, 0.96],
    better="higher",
)
SCATTER = Scatter(
    title="one set",
    x="idle",
    y="slowdown",
    clouds=[
        Cloud(label="search", x=[1.0, 2.0], y=[3.0, 2.0], joined=True),
        Cloud(label="t-cpu", x=[4.0], y=[30.0]),
    ],
)
LANES = Lanes(
    title="set-10",
    x="time (s)",
    jobs=["a", "b"],
    stretches=[
        Stretch(job="a", start=0, end=5, doing="compute"),
        Stretch(job="b", start=0, end=5, doing="wait"),
        Stretch(job="a", start=5, end=9, doing="io", share=0.25),
    ],
    window=(0, 10),
)


def bars(**options: object) -> Bars:
    series = [
        Series(label="static", x=[0, 1], y=[1.0, 2.0], low=[0.5, 1.5], high=[1.5, 2.5]),
        Series(label="elsewhere", x=[0, 1], y=[4.0, 8.0]),
    ]
    given = {"title": "T", "x": "x", "y": "y", "labels": ["a", "b"], "series": series} | options
    return Bars(**given)  # type: ignore[arg-type]


BARS = bars(references=[Reference(y=3.0, label="paper")])


def test_every_policy_of_the_studies_has_its_own_colour_and_marker() -> None:
    for names in (*POLICIES.values(), ("clairvoyant", "non-clairvoyant", "random")):
        looks = [LOOKS[name] for name in names if name in LOOKS]
        for one, other in combinations(looks, 2):
            assert one.colour != other.colour
            assert (one.marker, one.line) != (other.marker, other.line)
    assert set(POLICIES["sharing"]) & set(LOOKS)
    assert set(POLICIES["allocation"]) & set(LOOKS)
    assert look("set-10, learned").colour == look("set-10").colour
    assert look("set-10, learned").line != look("set-10").line


def test_curves_are_named_where_they_end_without_overlap() -> None:
    canvas = draw(figure(curves(references=[Reference(y=5.03, label="bound")])))
    (axes,) = canvas.axes
    canvas.draw_without_rendering()
    # Of the words alone: an annotation's own extent takes in the line that leads to it.
    boxes = {text.get_text(): Text.get_window_extent(text) for text in axes.texts}
    assert set(boxes) == {"set-10", "fair-share", "set-10, learned", "bound"}
    right = axes.get_window_extent().x1
    assert all(box.x0 > right for box in boxes.values())
    assert all(box.x1 < canvas.bbox.x1 for box in boxes.values()), "a name leaves the figure"
    ordered = sorted(boxes.values(), key=lambda box: box.y0)
    assert all(below.y1 <= above.y0 + 1 for below, above in pairwise(ordered))


@pytest.mark.parametrize("wanted", [[0, 0, 0], [0, 1, 50, 51], [5, 20, 40]])
def test_names_are_moved_apart_no_more_than_needed(wanted: list[float]) -> None:
    placed = spread(wanted, 10)
    assert all(b - a >= 10 - 1e-3 for a, b in pairwise(placed))
    assert sum(placed) == pytest.approx(sum(wanted))
    if all(b - a >= 10 for a, b in pairwise(wanted)):
        assert placed == wanted


@pytest.mark.parametrize(
    "one",
    [
        figure(curves(), curves(log_x=True), curves(log_y=True)),
        figure(DOTS, replace(DOTS, log=True)),
        figure(SCATTER, replace(SCATTER, log_y=True)),
        figure(LANES, LANES, stacked=True),
        figure(BARS, bars(stacked=True, key=True), bars(log_y=True, small=True)),
    ],
)
def test_the_same_records_make_the_same_files(tmp_path: Path, one: Figure) -> None:
    written = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        files = save(one, tmp_path / name)
        assert set(files) == {"png", "svg"}
        written.append({key: file.read_bytes() for key, file in files.items()})
    assert written[0] == written[1]
    assert written[0]["png"].startswith(b"\x89PNG")
    assert b"<svg" in written[0]["svg"]


def test_the_best_dot_is_in_bold() -> None:
    (axes,) = draw(figure(DOTS)).axes
    weights = {text.get_text(): text.get_fontweight() for text in axes.texts}
    assert weights == {"0.970": "bold", "0.950": "normal"}


def rectangles(panel: Bars) -> list[tuple[float, float, float, str]]:
    """Left end, bottom, height and colour of every bar, series by series."""
    (axes,) = draw(figure(panel)).axes
    return [
        (bar.get_x(), bar.get_y(), bar.get_height(), to_hex(bar.get_facecolor()))
        for bar in axes.patches
        if isinstance(bar, Rectangle)
    ]


def test_bars_stand_side_by_side_or_on_each_other() -> None:
    beside = rectangles(BARS)
    assert [height for _, _, height, _ in beside] == [1, 2, 4, 8]
    assert {bottom for _, bottom, _, _ in beside} == {0}
    assert len({x for x, _, _, _ in beside}) == 4
    stacked = rectangles(bars(stacked=True))
    assert [bottom for _, bottom, _, _ in stacked] == [0, 0, 1, 2]
    assert len({x for x, _, _, _ in stacked}) == 2


def test_a_policy_has_its_colour_in_bars_too_and_a_sign_one_of_two() -> None:
    assert rectangles(BARS)[0][3].lower() == LOOKS["static"].colour.lower()
    lone = Series(label="difference", x=[0, 1], y=[3.0, -3.0])
    above, below = (bar[3] for bar in rectangles(bars(series=[lone], colour_by="sign")))
    assert above != below


def test_long_labels_slant_and_stay_in_the_figure() -> None:
    for labels, slanted in ((["a", "b"], False), (["a very long label", "b"], True)):
        canvas = draw(figure(bars(labels=labels)))
        canvas.draw_without_rendering()
        (axes,) = canvas.axes
        ticks = axes.get_xticklabels()
        assert {tick.get_rotation() > 0 for tick in ticks} == {slanted}
        assert all(tick.get_window_extent().y0 >= 0 for tick in ticks)


def test_a_figure_says_what_it_rests_on_and_breaks_into_rows() -> None:
    one = Figure(
        name="one",
        title="A figure with quite a long title",
        caption="measured",
        panels=[BARS] * 5,
        columns=2,
        source="measured here and there",
    )
    canvas = draw(one)
    canvas.draw_without_rendering()
    title, source = (text.get_window_extent() for text in canvas.texts)
    assert [text.get_text() for text in canvas.texts] == [one.title, one.source]
    assert title.x1 < source.x0
    bottoms = [round(axes.get_position().y0, 3) for axes in canvas.axes]
    assert len(bottoms) == 5
    assert len(set(bottoms)) == 3


def test_a_narrow_figure_is_wide_enough_for_its_title() -> None:
    canvas = draw(figure(bars(small=True)))
    canvas.draw_without_rendering()
    title, source = (text.get_window_extent() for text in canvas.texts)
    assert title.x1 < source.x0


def test_points_are_named_beside_the_axes_and_inside_the_figure() -> None:
    canvas = draw(figure(SCATTER))
    (axes,) = canvas.axes
    canvas.draw_without_rendering()
    legend = axes.get_legend()
    assert legend is not None
    names = legend.get_texts()
    assert [text.get_text() for text in names] == ["search", "t-cpu"]
    boxes = [text.get_window_extent() for text in names]
    assert all(axes.get_window_extent().x1 < box.x0 < box.x1 < canvas.bbox.x1 for box in boxes)


@pytest.mark.parametrize("jobs", [2, 12, 60])
def test_the_key_of_lanes_is_inside_the_picture(jobs: int) -> None:
    """It hung below the axes by a part of their height, and with twelve jobs out of the picture."""
    names = [str(j) for j in range(jobs)]
    canvas = draw(figure(replace(LANES, jobs=[*names, "a", "b"])))
    (axes,) = canvas.axes
    canvas.draw_without_rendering()
    legend = axes.get_legend()
    assert legend is not None
    box, below = legend.get_window_extent(), axes.get_window_extent().y0
    assert 0 <= box.y0 < box.y1 < below
