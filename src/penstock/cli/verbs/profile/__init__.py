"""penstock profile: what runs did to their files, and the jobs that makes of them."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO, Any

import click
import msgspec

from penstock.cli.common.output import finite, json_option
from penstock.cli.verbs.profile import show_profile
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

SHOWN = 8
"""Logs that a page has figures of."""
FAILED = 1


@click.command()
@click.argument("logs", metavar="[LOG.darshan|DIR]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--out", metavar="FILE.json", type=click.Path(path_type=Path), help="All, as JSON.")
@click.option(
    "--workload",
    metavar="FILE.json",
    type=click.Path(path_type=Path),
    help="The runs as jobs of a workload, for 'penstock simulate' and 'penstock allocate'.",
)
@click.option(
    "--curves",
    metavar="FILE",
    help="Bandwidth over I/O nodes, told from measured base patterns: curves.json of 'penstock "
    "explore', or mn4.",
)
@click.option("--html", metavar="FILE", type=click.Path(path_type=Path), help="A page to look at.")
@click.option(
    "--cores",
    metavar="N",
    type=click.IntRange(1),
    help="Processes a compute node, where a log does not say on how many nodes it was.",
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
    as_json: bool,
) -> int:
    """Profile runs by their Darshan logs: volumes, requests, layout, phases, and when.

    \b
    Examples:
      penstock profile run.darshan
      penstock profile run.darshan --curves mn4
      penstock profile logs/2026/11 --workload november.json --cores 48
      penstock profile --curves explored/curves.json       how well mixtures are told

    A folder stands for all logs in it and below; they are read one after the other, in a process
    of their own. A log that is damaged is told and left out, and the exit status is then 1. When
    interrupted, the same command goes on where it was, if it has a file to write.
    docs/writes/profile.md says what each figure means and what a log cannot tell.
    """
    results = [path for path in (out, workload, html) if path is not None]
    for result in results:
        check_writable(result, not_one_of=chain(logs_in(logs), [curves]))
    known = _bases(curves)
    if not logs:
        if curves is None or curves == "mn4":
            raise InputError("which logs? give LOG.darshan, or a folder of them")
        return show_profile.mixtures(
            Path(curves), base_patterns.read(Path(curves)), as_json=as_json
        )
    with ExitStack() as stack:
        kept = stack.enter_context(ResumeFile(beside(results[0]))) if results else None
        run = _Run(
            reader=stack.enter_context(Reader()),
            jobs=stack.enter_context(Jobs()),
            sinks=_sinks(stack, out, as_json=as_json),
            known=known,
            cores=cores,
            kept=kept,
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
    if kept is not None:
        kept.drop()
    if not as_json:
        run.show()
        for what, path in (("workload", workload), ("profiles", out), ("page", html)):
            if path is not None:
                click.echo(f"{what}: {path}")
    if run.failed:
        count = len(run.failed)
        click.echo(f"penstock: {count} of {count + len(run.jobs)} logs could not be read", err=True)
    return FAILED if run.failed else 0


def beside(result: Path) -> Path:
    """Return where profiles are kept until a result is written."""
    return result.with_name(f"{result.name}.jsonl")


def _bases(curves: str | None) -> tuple[Base, ...]:
    if curves is None:
        return ()
    return mn4() if curves == "mn4" else base_patterns.read(Path(curves)).bases


Sink = Callable[[bytes], object]


def _sinks(stack: ExitStack, out: Path | None, *, as_json: bool) -> list[Sink]:
    sinks: list[Sink] = []
    if as_json:
        sinks.append(lambda text: click.echo(text.decode(), nl=False))
    if out is not None:
        file: IO[bytes] = stack.enter_context(stack.enter_context(replacing(out)).open("wb"))
        sinks.append(file.write)
    return sinks


class _Run:
    """Reads logs one by one and keeps little of each."""

    def __init__(
        self,
        *,
        reader: Reader,
        jobs: Jobs,
        sinks: list[Sink],
        known: tuple[Base, ...],
        cores: int | None,
        kept: ResumeFile | None,
    ) -> None:
        self.reader, self.jobs, self.sinks = reader, jobs, sinks
        self.known, self.cores, self.kept = known, cores, kept
        self.first: list[Profile] = []
        self.mixture: Mixture | None = None
        self.rows: list[tuple[str, ...]] = []
        self.failed: list[dict[str, str]] = []

    def read(self, paths: Sequence[Path]) -> None:
        """Read all logs; those that cannot be are told and left out."""
        total = sum(1 for _ in logs_in(paths))
        if not total:
            raise InputError(f"{paths[0]} has no *.darshan in it; give another folder")
        with progress("reading logs", total) as told:
            for path in logs_in(paths):
                try:
                    self._take(self._profile(path))
                except InputError as error:
                    if total == 1:
                        raise
                    self.failed.append({"log": str(path), "error": str(error)})
                    click.echo(f"penstock: {error}", err=True)
                told.advance()
        self._put(b"\n]" if len(self.jobs) else b'{"profiles":[]')
        self._put(b',\n"failed":' + msgspec.json.encode(self.failed) + b"}\n")

    def interrupted(self, *, as_json: bool) -> None:
        """Say what is left of the work so far, and how to go on."""
        count = len(self.jobs)
        if self.kept is not None:
            where = f"profiles of {count} logs are kept in {self.kept.path}; the same command"
        else:
            if not as_json:
                self.show()
            where = f"{count} logs were read; with --out FILE.json an interrupted command"
        click.echo(f"penstock: {where} goes on from there", err=True)

    def _profile(self, path: Path) -> Profile:
        found = self.kept.get(path) if self.kept is not None else None
        if found is None:
            found = self.reader.read(path)
            if self.kept is not None:
                self.kept.add(path, found)
        return found

    def _take(self, found: Profile) -> None:
        mixture = self._mixture(found)
        self._put(b",\n" if len(self.jobs) else b'{"profiles":[\n')
        self._put(msgspec.json.encode(finite(self._told(found, mixture))))
        # An allocator would take a guess for knowledge.
        curve = mixture.curve if mixture is not None and not mixture.guess else None
        self.jobs.add(found, cores=self.cores, curve=curve)
        if len(self.first) < SHOWN:
            self.first.append(found)
            self.mixture = mixture
        self.rows.append(show_profile.row(found))

    def _mixture(self, found: Profile) -> Mixture | None:
        return combine(found.patterns, self.known) if self.known and found.volume else None

    def _told(self, found: Profile, mixture: Mixture | None) -> dict[str, Any]:
        told: dict[str, Any] = msgspec.to_builtins(found)
        try:
            told["write"] = msgspec.to_builtins(write_of(found, cores=self.cores))
        except InputError:
            told["write"] = None
        return told | (show_profile.curve(mixture) if mixture is not None else {})

    def _put(self, text: bytes) -> None:
        for sink in self.sinks:
            sink(text)

    def show(self) -> None:
        """Print one log in detail, several as a table."""
        if len(self.rows) == 1:
            show_profile.one(self.first[0], self.mixture, cores=self.cores)
        elif self.rows:
            show_profile.several(self.rows)
