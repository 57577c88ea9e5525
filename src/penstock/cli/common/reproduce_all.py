"""Every study, one after the other, each in a directory of its own, and one page of all."""

import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from penstock.cli.common import executor_options, one_study, whole_report
from penstock.errors import InputError
from penstock.files import make_directory

if TYPE_CHECKING:
    from penstock.campaign.campaign import Results
    from penstock.campaign.executors import Place
    from penstock.campaign.sizes import Size
    from penstock.config import Loaded
    from penstock.report.summary import Studied
    from penstock.studies.study import Study

ERROR = "error.txt"


def asked(only: str | None) -> "list[Study]":
    """Return the studies of a list of names, or all, in the order in which they are run."""
    from penstock import studies  # noqa: PLC0415 - so that --help stays quick

    names = [name.strip() for name in only.split(",")] if only is not None else studies.IN_ORDER
    found = {name: studies.load(name) for name in names}
    return [found[name] for name in studies.IN_ORDER if name in found]


def reproduce_all(
    chosen: "Sequence[Study]",
    out: Path,
    loaded: "Loaded",
    *,
    size: "Size",
    seed: int,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Run studies, keep what each has, and write one page, whatever becomes of any of them.

    Studies that were not asked for are on it too where they are finished there.
    """
    from penstock import studies  # noqa: PLC0415

    _prepare(out)
    for study in chosen:
        _check(study, out / study.name, size=size, seed=seed)
    began = time.time()
    interrupted = False
    with _Workers(loaded, jobs) as workers:
        told, absent = _taken_in(chosen, out, size=size, seed=seed)
        for number, study in enumerate(chosen, start=1):
            label = f"[{number}/{len(chosen)}] {study.name}"
            try:
                with workers.lent() as place:
                    told[study.name] = _done(
                        study, out / study.name, place, size=size, seed=seed, label=label
                    )
            except KeyboardInterrupt:
                interrupted = True
                told[study.name] = _unfinished(study, size, seed, "interrupted")
                told |= {
                    one.name: _unfinished(one, size, seed, "not run") for one in chosen[number:]
                }
                break
            except Exception as error:
                rest = [one.campaign(size=size, seed=seed).alone for one in chosen[number:]]
                then = workers.after(error, rest)
                told[study.name] = _failed(
                    study, out / study.name, error, size=size, seed=seed, then=then
                )
    whole = whole_report.Whole(
        studies=[told[name] for name in studies.IN_ORDER if name in told],
        absent=absent,
        ran=[study.name for study in chosen],
        size=size,
        seed=seed,
        began=began,
    )
    whole_report.write(out, whole)
    whole_report.show(out, whole, as_json=as_json)
    if interrupted:
        raise KeyboardInterrupt
    failed = [study.name for study in whole.studies if study.state == "failed"]
    if failed:
        raise click.ClickException(
            f"{len(failed)} of {len(chosen)} studies failed: {', '.join(failed)}; the same "
            "command tries them again and keeps the others"
        )


class _Workers:
    """Who works for the studies, one after the other; a context manager.

    A place of this machine is opened for each: one that breaks takes no other study with it. One
    elsewhere stays for all, for workers wait in queues there, until it fails.
    """

    def __init__(self, loaded: "Loaded", jobs: int | None) -> None:
        from penstock.config.campaign import LOCAL  # noqa: PLC0415

        self._loaded = loaded
        self._jobs = jobs
        self._where = loaded.config.campaign.on
        self._away = self._where != LOCAL
        self._stack = ExitStack()
        self._kept: Place | None = None

    def __enter__(self) -> "_Workers":
        """Refuse, before any work, a place that cannot be."""
        if self._away:
            self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _open(self) -> "Place":
        self._kept = self._stack.enter_context(executor_options.opened(self._loaded, self._jobs))
        return self._kept

    def _close(self) -> None:
        self._kept = None
        self._stack.close()

    @contextmanager
    def lent(self) -> Iterator["Place"]:
        """Give a place to work at, a new one if the last has failed."""
        from penstock.campaign.executors import ExecutorError  # noqa: PLC0415

        if not self._away:
            with executor_options.opened(self._loaded, self._jobs) as place:
                yield place
            return
        try:
            yield self._kept or self._open()
        except ExecutorError:
            self._close()
            raise

    def after(self, error: Exception, alone: Sequence[bool]) -> str:
        """Return what becomes of the studies after one that failed, given which run alone, here."""
        from penstock.campaign.executors import ExecutorError  # noqa: PLC0415

        if not alone:
            return ""
        if not self._away or not isinstance(error, ExecutorError):
            return "; the others go on"
        return "; the others run here" if all(alone) else f"; the next asks {self._where} again"


def _prepare(out: Path) -> None:
    from penstock.campaign.campaign import RESULTS  # noqa: PLC0415

    if (out / RESULTS).exists():
        raise InputError(f"{out} has results of one study; choose another --out")
    make_directory(out)


def _check(study: "Study", out: Path, *, size: "Size", seed: int) -> None:
    """Refuse a directory with results of another run before any work is done."""
    from penstock.campaign.campaign import RESULTS  # noqa: PLC0415
    from penstock.campaign.journal import Journal  # noqa: PLC0415

    if (out / RESULTS).exists():
        with Journal(out / RESULTS, study.campaign(size=size, seed=seed).header):
            pass


def _taken_in(
    chosen: "Sequence[Study]", out: Path, *, size: "Size", seed: int
) -> "tuple[dict[str, Studied], dict[str, str]]":
    """Return what studies that were not asked for found there, and why others are left out."""
    from penstock import studies  # noqa: PLC0415

    told: dict[str, Studied] = {}
    absent: dict[str, str] = {}
    names = {study.name for study in chosen}
    for name in studies.IN_ORDER:
        if name in names:
            continue
        study = studies.load(name)
        try:
            results = one_study.finished(study, out / name, size=size, seed=seed)
            if results is None:
                absent[name] = ""
                continue
            click.echo(f"{name}: finished there before, and taken in", err=True)
            one_study.prepare(out / name)
            told[name] = _written(study, results, out / name)
        except Exception as error:
            said = str(error) if isinstance(error, InputError) else repr(error)
            absent[name] = f"left out: {said}"
            click.echo(f"{name} is left out: {said}", err=True)
    return told, absent


def _done(
    study: "Study", out: Path, place: "Place", *, size: "Size", seed: int, label: str
) -> "Studied":
    click.echo(label, err=True)
    one_study.prepare(out)
    results = one_study.run(study, out, size=size, seed=seed, place=place, label=label)
    return _written(study, results, out)


def _written(study: "Study", results: "Results", out: Path) -> "Studied":
    from penstock.report.summary import Studied  # noqa: PLC0415

    written = one_study.write(study, results, out)
    (out / ERROR).unlink(missing_ok=True)
    return Studied(
        name=study.name,
        title=study.title,
        command=one_study.command(study.name, results.campaign.size, results.campaign.seed),
        findings=written.findings,
        pictures=written.pictures,
        made=written.made,
        cells=len(results.campaign.cells),
        seconds=sum(results.seconds.values()),
    )


def _unfinished(
    study: "Study", size: "Size", seed: int, state: Literal["interrupted", "not run"]
) -> "Studied":
    from penstock.report.summary import Studied  # noqa: PLC0415

    return Studied(
        name=study.name,
        title=study.title,
        command=one_study.command(study.name, size, seed),
        state=state,
        problem="the same command goes on from what is kept" if state == "interrupted" else "",
    )


def _failed(
    study: "Study", out: Path, error: Exception, *, size: "Size", seed: int, then: str
) -> "Studied":
    """Return that a study failed; all that is known of an error of ours is kept in a file."""
    from penstock.campaign.executors import ExecutorError  # noqa: PLC0415
    from penstock.report.summary import Studied  # noqa: PLC0415

    said = error.format_message() if isinstance(error, click.ClickException) else str(error)
    if not isinstance(error, InputError | click.ClickException | ExecutorError):
        said = f"{type(error).__name__}: {said}"
        out.mkdir(parents=True, exist_ok=True)
        one_study.write_text(out / ERROR, "".join(traceback.format_exception(error)))
    click.echo(f"{study.name} failed: {said}{then}", err=True)
    return Studied(
        name=study.name,
        title=study.title,
        command=one_study.command(study.name, size, seed),
        state="failed",
        problem=said,
    )
