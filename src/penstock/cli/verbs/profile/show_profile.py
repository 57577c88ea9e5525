"""Printing profiles."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from penstock.cli.common.output import emit_json, emit_table
from penstock.cli.common.terminal import echo
from penstock.errors import InputError
from penstock.learn.profiles import Heat, Profile, write_of
from penstock.learn.profiles.mixture import Mixture, direct_or, error
from penstock.learn.profiles.profile import CLASSES
from penstock.printable import printable
from penstock.sim.formats.base_patterns import PatternFile
from penstock.sim.formats.decode import curve_points
from penstock.units import show_seconds, show_volume

SHADES = " ░▒▓█"
MOST = 12
"""The number of rows shown; --json has all."""
TIMES = {
    "dxt": "every request was logged",
    "heatmap": "bins of time were logged",
    "files": "first and last access of each file were logged",
    "none": "the log has no times",
}


def one(profile: Profile, mixture: Mixture | None, *, cores: int | None, curves: str = "") -> None:
    """Print one profile in detail; `curves` names the base patterns of the mixture."""
    on = f" on {profile.nodes} nodes" if profile.nodes is not None else ""
    began = datetime.fromtimestamp(profile.start, UTC).strftime("%Y-%m-%d %H:%M")
    echo(
        f"{printable(profile.name)}\n{printable(profile.executable) or 'a program'}, "
        f"{profile.processes:,} processes{on}, {show_seconds(profile.seconds)} from "
        f"{began} UTC; log version {profile.version}\n"
        f"read {show_volume(profile.read)}, wrote {show_volume(profile.written)}; "
        f"{profile.shared_files:,} shared files, {profile.own_files:,} files of single processes; "
        f"at most {show_seconds(profile.io_seconds)} in calls\n"
    )
    layers = [
        (layer.name, f"{layer.files:,}", show_volume(layer.read), show_volume(layer.written))
        for layer in profile.layers
    ]
    emit_table(("interface", "files", "read", "written"), layers)
    _patterns(profile)
    _sizes(profile)
    _phases(profile)
    if profile.heat is not None:
        _heat(profile.heat)
    if mixture is not None:
        _curve(mixture, curves)
        _own_bandwidth(profile)
    _write(profile, cores)
    for note in profile.notes:
        echo(f"note: {note}")


def _patterns(profile: Profile) -> None:
    rows = [
        (
            pattern.operation,
            pattern.layout,
            pattern.spatiality,
            show_volume(pattern.request_size),
            f"{pattern.requests:,}",
            show_volume(pattern.volume),
            f"{pattern.files:,}",
            f"{pattern.processes:,}",
        )
        for pattern in profile.patterns[:MOST]
    ]
    columns = ("pattern", "layout", "order", "request", "requests", "volume", "files", "processes")
    echo()
    emit_table(columns, rows, text=("layout", "order"))
    if len(profile.patterns) > MOST:
        echo(f"and {len(profile.patterns) - MOST} smaller ones")


def _sizes(profile: Profile) -> None:
    rows = [
        (name, f"{read:,}", f"{written:,}")
        for name, read, written in zip(
            CLASSES, profile.read_sizes, profile.write_sizes, strict=True
        )
        if read or written
    ]
    if rows:
        echo()
        emit_table(("request size", "reads", "writes"), rows)


def _phases(profile: Profile) -> None:
    period = "" if profile.w_iter is None else f", w_iter {show_seconds(profile.w_iter)}"
    echo(f"\nphases: {len(profile.phases) or 'unknown'}{period} ({TIMES[profile.source]})")
    rows = [
        (
            show_seconds(phase.began),
            show_seconds(phase.seconds),
            show_volume(phase.read),
            show_volume(phase.written),
        )
        for phase in profile.phases[:MOST]
    ]
    if rows:
        emit_table(("begins at", "lasts", "read", "written"), rows)
    if len(profile.phases) > MOST:
        echo(f"and {len(profile.phases) - MOST} more")


def _heat(heat: Heat) -> None:
    for title, cells in (("written", heat.written), ("read", heat.read)):
        most = max((value for row in cells for value in row), default=0.0)
        if not most:
            continue
        echo(f"\n{title}, by ranks and time; the darkest is {show_volume(most)}")
        width = max(map(len, heat.ranks))
        for name, row in zip(heat.ranks, cells, strict=True):
            echo(f"{name:>{width}} |{''.join(_shade(value / most) for value in row)}|")


def _shade(part: float) -> str:
    return SHADES[0] if part <= 0 else SHADES[1 + min(int(part * 4), 3)]


def _curve(mixture: Mixture, curves: str) -> None:
    matched = [
        (
            f"{match.part.operation} {match.part.layout} {show_volume(match.part.request_size)}",
            show_volume(match.part.volume),
            match.base.name,
            f"{match.octaves:.1f}",
            ", ".join(match.differences) or "-",
        )
        for match in mixture.matches[:MOST]
    ]
    where = "on MareNostrum 4 (mn4)" if curves == "mn4" else f"in {printable(curves)}"
    echo(
        "\nbandwidth over I/O nodes, estimated from base patterns that were measured "
        f"{where}, not in this log"
    )
    columns = ("part", "volume", "nearest base pattern", "octaves off", "differences")
    emit_table(columns, matched, text=("nearest base pattern", "differences"))
    points = zip(mixture.curve.counts, mixture.curve.bandwidths, strict=True)
    emit_table(("I/O nodes", "estimated MB/s"), [(direct_or(n), f"{b:,.1f}") for n, b in points])
    if mixture.guess:
        echo(
            f"a guess: the base patterns are {mixture.octaves:.1f} octaves off; measure closer "
            "patterns with 'penstock explore'"
        )


def _own_bandwidth(profile: Profile) -> None:
    """Print what the run itself reached, so that nobody takes an estimate for it."""
    seconds = sum(phase.seconds for phase in profile.phases)
    if not seconds:
        echo("measured in this log: unknown, as it has no times of phases")
        return
    moved = sum(phase.read + phase.written for phase in profile.phases)
    echo(
        f"measured in this log: {moved / seconds / 1e6:,.1f} MB/s over its phases, on the machine "
        "and with the neighbours that it ran with"
    )


def _write(profile: Profile, cores: int | None) -> None:
    try:
        write = write_of(profile, cores=cores)
    except InputError as why:
        if profile.written:
            echo(f"\nas a write: unknown; {why}")
        return
    echo(
        f"\nas a write: {write.nodes} nodes x {write.cores} processes x {show_volume(write.burst)}"
        f" to {'one file' if write.shared else 'one file per process'}"
    )


def row(profile: Profile) -> tuple[str, ...]:
    """Return a profile as a row of `several`."""
    main = profile.patterns[0] if profile.patterns else None
    return (
        profile.name if len(profile.name) <= 40 else profile.name[:37] + "...",
        f"{profile.processes:,}",
        "-" if profile.nodes is None else str(profile.nodes),
        show_seconds(profile.seconds),
        show_volume(profile.read),
        show_volume(profile.written),
        "-" if main is None else f"{main.operation} {main.layout} {main.spatiality}",
        "-" if main is None else show_volume(main.request_size),
        str(len(profile.phases) or "-"),
        "-" if profile.w_iter is None else show_seconds(profile.w_iter),
    )


def several(rows: list[tuple[str, ...]]) -> None:
    """Print several profiles, one line each."""
    columns = ("run", "processes", "nodes", "time", "read", "written", "mostly")
    emit_table((*columns, "request", "phases", "w_iter"), rows, text=("mostly",))


def curve(mixture: Mixture) -> dict[str, Any]:
    """Return an estimated curve for --json."""
    return {
        "curve": curve_points(mixture.curve),
        "octaves": mixture.octaves,
        "guess": mixture.guess,
        "matches": [
            {
                "volume": match.part.volume,
                "base": match.base.name,
                "octaves": match.octaves,
                "differences": match.differences,
            }
            for match in mixture.matches
        ],
    }


def mixtures(path: Path, explored: PatternFile, *, as_json: bool) -> int:
    """Print the error of curves estimated from base patterns, for mixtures that were measured."""
    if not explored.mixtures:
        raise InputError(f"{path} has no job of several patterns; measure one with its parts")
    estimates = [
        {
            "job": one.name,
            "io_nodes": n,
            "told": one.prediction.curve.bandwidth(n),
            "measured": one.curve.bandwidth(n),
            "error": off,
            "octaves": one.prediction.octaves,
        }
        for one in explored.mixtures
        for n, off in error(one.prediction.curve, one.curve).items()
    ]
    if as_json:
        emit_json({"emulated": explored.emulated, "mixtures": estimates})
        return 0
    rows = [
        (
            str(one["job"]),
            direct_or(int(str(one["io_nodes"]))),
            f"{one['told']:,.1f}",
            f"{one['measured']:,.1f}",
            f"{one['error']:+.1%}",
            f"{one['octaves']:.1f}",
        )
        for one in estimates
    ]
    emit_table(("mixture", "I/O nodes", "estimated MB/s", "measured", "error", "octaves off"), rows)
    return 0
