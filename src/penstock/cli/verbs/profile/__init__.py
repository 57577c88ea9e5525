"""penstock profile: the I/O of runs from their Darshan logs, and jobs made from it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO, Any

import click
import msgspec

from penstock.cli.common.options import PATH
from penstock.cli.common.output import finite, json_option
from penstock.cli.common.terminal import echo
from penstock.cli.verbs.profile import show_profile
from penstock.cli.verbs.profile.sets import SetCounter
from penstock.errors import InputError
from penstock.files import check_writable, replacing
from penstock.learn.profiles import Profile, write_of
from penstock.learn.profiles.mixture import Base, Mixture, combine
from penstock.learn.profiles.mixture import shipped as mn4
from penstock.progress import progress
from penstock.sim.formats import base_patterns
from penstock.sim.formats.darshan import Reader, logs_in
from penstock.sim.formats.darshan.jobs import Jobs
from penstock.sim.formats.darshan.resume_file import ResumeFile

MAX_FIGURES = 8
"""The number of logs that a page shows figures of."""
FAILED = 1


@click.command()
@click.argument("logs", metavar="[LOG.darshan|DIR]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--out", metavar="FILE.json", type=PATH, help="Write all profiles as JSON.")
@click.option(
    "--workload",
    metavar="FILE.json",
    type=click.Path(path_type=Path),
    help="Write the runs as jobs of a workload, for 'penstock simulate' and 'allocate'.",
)
@click.option(
    "--curves",
    metavar="FILE|mn4",
    help="Estimate the bandwidth that the runs would reach over I/O nodes where base patterns were "
    "measured: curves.json of 'penstock explore', or mn4, of MareNostrum 4. The bandwidth in the "
    "log itself is another figure, and is not used.",
)
@click.option("--html", metavar="FILE", type=PATH, help="Write an HTML page with figures.")
@click.option(
    "--cores",
    metavar="N",
    type=click.IntRange(1),
    help="Processes per compute node, for logs that lack the number of nodes.",
)
@click.option(
    "--sets",
    is_flag=True,
    help="Show which sets of set-10 the jobs fall into, and how often sets do I/O together; also "
    "for one workload file.",
)
@click.option(
    "--least-bandwidth",
    metavar="RATE",
    default="100 MB/s",
    show_default=True,
    help="With --sets: leave out jobs below this bandwidth while they do I/O.",
)
@click.option(
    "--least-phases",
    metavar="N",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="With --sets: leave out jobs with fewer I/O phases.",
)
@click.option(
    "--window",
    metavar="TIME",
    default="5 h",
    show_default=True,
    help="With --sets: the length of the windows in which sets are counted.",
)
@json_option
def profile(
    *,
    logs: tuple[Path, ...],
    out: Path | None,
    workload: Path | None,
    curves: str | None,
    html: Path | None,
    cores: int | None,
    sets: bool,
    least_bandwidth: str,
    least_phases: int,
    window: str,
    as_json: bool,
) -> int:
    """Profile runs from their Darshan logs: volumes, requests, layout, phases and times.

    \b
    Examples:
      penstock profile run.darshan
      penstock profile run.darshan --curves mn4
      penstock profile logs/2026/11 --workload november.json --cores 48
      penstock profile --curves explored/curves.json       check the estimates of mixtures
      penstock profile logs/2026 --sets                    is set-10 worth it on this machine?
      penstock profile jobs.json --sets --window 30min

    A directory stands for all logs in and below it; they are read one after the other, in a
    separate process. A damaged log is reported and skipped, and the exit status is then 1. After an
    interruption the same command continues where it stopped, if it has a file to write.
    docs/writes/profile.md explains each figure, and what a log cannot tell.
    """
    results = [path for path in (out, workload, html) if path is not None]
    for result in results:
        check_writable(result, not_one_of=chain(logs_in(logs), [curves]))
    counter = SetCounter(least_bandwidth, least_phases, window) if sets else None
    if counter is not None and counter.is_workload(logs):
        counter.add_workload(logs, results)
        counter.show(logs[0], as_json=as_json)
        return 0
    bases = _bases(curves)
    if not logs:
        if curves is None or curves == "mn4":
            raise InputError("no logs; give LOG.darshan, or a directory of logs")
        return show_profile.mixtures(
            Path(curves), base_patterns.read(Path(curves)), as_json=as_json
        )
    with ExitStack() as stack:
        resume = stack.enter_context(ResumeFile(resume_path(results[0]))) if results else None
        run = _Run(
            reader=stack.enter_context(Reader()),
            jobs=stack.enter_context(Jobs()),
            sinks=_sinks(stack, out, as_json=as_json and counter is None),
            bases=bases,
            cores=cores,
            resume=resume,
            curves=curves or "",
            each=None if counter is None else counter.add,
        )
        try:
            run.read(logs)
        except KeyboardInterrupt:
            run.interrupted(as_json=as_json)
            raise
        if workload is not None:
            run.jobs.write(workload)
    if html is not None:
        from penstock.report import profile as page  # noqa: PLC0415 - matplotlib takes a while

        page.write(run.first, len(run.jobs) - len(run.first), html)
    if resume is not None:
        resume.drop()
    if counter is not None:
        counter.show(logs[0], as_json=as_json)
    elif not as_json:
        run.show()
    if not as_json:
        _name_results({"workload": workload, "profiles": out, "page": html})
    return run.status()


def _name_results(paths: Mapping[str, Path | None]) -> None:
    for kind, path in paths.items():
        if path is not None:
            echo(f"{kind}: {path}")


def resume_path(result: Path) -> Path:
    """Return the file that keeps profiles until a result is written."""
    return result.with_name(f"{result.name}.jsonl")


def _bases(curves: str | None) -> tuple[Base, ...]:
    if curves is None:
        return ()
    return mn4() if curves == "mn4" else base_patterns.read(Path(curves)).bases


Sink = Callable[[bytes], object]


def _sinks(stack: ExitStack, out: Path | None, *, as_json: bool) -> list[Sink]:
    sinks: list[Sink] = []
    if as_json:
        sinks.append(lambda text: echo(text.decode(), nl=False))
    if out is not None:
        file: IO[bytes] = stack.enter_context(stack.enter_context(replacing(out)).open("wb"))
        sinks.append(file.write)
    return sinks


class _Run:
    """Reads logs one by one, and keeps little of each in memory."""

    def __init__(
        self,
        *,
        reader: Reader,
        jobs: Jobs,
        sinks: list[Sink],
        bases: tuple[Base, ...],
        cores: int | None,
        resume: ResumeFile | None,
        curves: str = "",
        each: Callable[[Profile], object] | None = None,
    ) -> None:
        self.reader, self.jobs, self.sinks = reader, jobs, sinks
        self.each, self.curves = each, curves
        self.bases, self.cores, self.resume = bases, cores, resume
        self.first: list[Profile] = []
        self.mixture: Mixture | None = None
        self.rows: list[tuple[str, ...]] = []
        self.failed: list[dict[str, str]] = []

    def read(self, paths: Sequence[Path]) -> None:
        """Read all logs; report and skip those that cannot be read."""
        total = sum(1 for _ in logs_in(paths))
        if not total:
            raise InputError(f"{paths[0]} contains no *.darshan; give another directory")
        with progress("reading logs", total) as bar:
            for path in logs_in(paths):
                try:
                    self._add(self._profile(path))
                except InputError as error:
                    if total == 1:
                        raise
                    self.failed.append({"log": str(path), "error": str(error)})
                    echo(f"penstock: {error}", err=True)
                bar.advance()
        self._put(b"\n]" if len(self.jobs) else b'{"profiles":[]')
        self._put(b',\n"failed":' + msgspec.json.encode(self.failed) + b"}\n")

    def interrupted(self, *, as_json: bool) -> None:
        """Print what is kept of the work so far, and how to continue."""
        count = len(self.jobs)
        if self.resume is not None:
            text = f"profiles of {count} logs are kept in {self.resume.path}; the same command"
        else:
            if not as_json:
                self.show()
            text = f"{count} logs were read; with --out FILE.json an interrupted command"
        echo(f"penstock: {text} continues from there", err=True)

    def _profile(self, path: Path) -> Profile:
        profile = self.resume.get(path) if self.resume is not None else None
        if profile is None:
            profile = self.reader.read(path)
            if self.resume is not None:
                self.resume.add(path, profile)
        return profile

    def _add(self, profile: Profile) -> None:
        mixture = self._mixture(profile)
        self._put(b",\n" if len(self.jobs) else b'{"profiles":[\n')
        self._put(msgspec.json.encode(finite(self._fields(profile, mixture))))
        # A guess is left out: an allocator would trust it.
        curve = mixture.curve if mixture is not None and not mixture.guess else None
        self.jobs.add(profile, cores=self.cores, curve=curve)
        if len(self.first) < MAX_FIGURES:
            self.first.append(profile)
            self.mixture = mixture
        self.rows.append(show_profile.row(profile))
        if self.each is not None:
            self.each(profile)

    def _mixture(self, profile: Profile) -> Mixture | None:
        return combine(profile.patterns, self.bases) if self.bases and profile.volume else None

    def _fields(self, profile: Profile, mixture: Mixture | None) -> dict[str, Any]:
        fields: dict[str, Any] = msgspec.to_builtins(profile)
        try:
            fields["write"] = msgspec.to_builtins(write_of(profile, cores=self.cores))
        except InputError:
            fields["write"] = None
        return fields | (show_profile.curve(mixture) if mixture is not None else {})

    def status(self) -> int:
        """Say how many logs could not be read, and return the exit status."""
        if not self.failed:
            return 0
        count = len(self.failed)
        total = count + len(self.jobs)
        echo(f"penstock: {count} of {total} logs could not be read", err=True)
        return FAILED

    def _put(self, text: bytes) -> None:
        for sink in self.sinks:
            sink(text)

    def show(self) -> None:
        """Print one log in detail, several as a table."""
        if len(self.rows) == 1:
            show_profile.one(self.first[0], self.mixture, cores=self.cores, curves=self.curves)
        elif self.rows:
            show_profile.several(self.rows)
