"""Run every study, each in a directory of its own, and write one page of all."""

import os
import platform
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from penstock import __version__, studies
from penstock.campaign.cells import RESULTS, Results
from penstock.campaign.executors import ExecutorError, WorkerPool
from penstock.campaign.journal import Journal
from penstock.campaign.sizes import CAUTION, Size
from penstock.errors import InputError
from penstock.files import make_directory
from penstock.progress import message
from penstock.report import tables
from penstock.report.all_studies import StudyResult, counted, of_papers, page, partial, tallies
from penstock.report.findings import NO, YES, Claim, Items, Tally
from penstock.studies import run_study
from penstock.studies.study import Study

PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib")
SUMMARY = "summary.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All studies on the page: those that `ran` now, and others that were finished earlier.

    `absent` are not on the page, each with the reason, or "" where there are no results.
    """

    studies: Sequence[StudyResult]
    absent: Mapping[str, str]
    ran: Sequence[str]
    size: Size
    seed: int
    began: float

    @property
    def taken_in(self) -> list[str]:
        """Return the names of the studies that were finished earlier."""
        return [study.name for study in self.studies if study.name not in self.ran]

    @property
    def failed(self) -> list[str]:
        """Return the names of the studies that failed."""
        return [study.name for study in self.studies if study.state == "failed"]

    @property
    def command(self) -> str:
        """Return the command that makes such a page."""
        only = ",".join(study.name for study in self.studies) if self.absent else ""
        return run_study.command("all", self.size, self.seed, only=only)


def write_page(out: Path, summary: Summary) -> None:
    """Write the page and its tables."""
    claims = _claims(summary)
    texts = {
        "report.html": page(
            summary.studies,
            absent=summary.absent,
            provenance=_provenance(summary),
            caution=CAUTION[summary.size],
        ),
        SUMMARY: tables.rows_csv(tally(summary)),
        "claims.csv": tables.rows_csv(claims),
        "claims.md": tables.rows_markdown(claims),
    }
    for name, text in texts.items():
        run_study.write_text(out / name, text)


def tally(summary: Summary) -> list[dict[str, object]]:
    """Return how many claims hold: of each paper, of ours, and of all papers on the page."""
    claims = counted(summary.studies)
    rows: list[dict[str, object]] = [
        {"by": by, **_counts(one)} for by, one in tallies(claims).items()
    ]
    papers = Tally.of(one.claim for one in of_papers(claims))
    which = "these papers" if partial(summary.studies, summary.absent) else "all papers"
    return [*rows, {"by": which, **_counts(papers)}]


def _counts(tally: Tally) -> dict[str, object]:
    return {**asdict(tally), "differ": tally.differ}


def as_data(summary: Summary) -> dict[str, object]:
    """Return the summary as the JSON of `reproduce all --json`."""
    fields = ("title", "state", "problem", "command", "cells", "seconds")
    counts = _counted(summary)
    return {
        "summary": tally(summary),
        "studies": [
            {"study": study.name} | {field: getattr(study, field) for field in fields}
            for study in summary.studies
        ],
        "taken_in": summary.taken_in,
        "not_asked_for": list(summary.absent),
        "claims": [
            {"study": study.name, **claim.as_data(), "counted": (study.name, number) in counts}
            for study, number, claim in _numbered(summary)
        ],
    }


def _claims(summary: Summary) -> list[dict[str, object]]:
    """Return the claims of all studies; `counted` is "no" where another study counts it."""
    counts = _counted(summary)
    return [
        {
            "study": study.name,
            **tables.cells(claim),
            "counted": YES if (study.name, number) in counts else NO,
        }
        for study, number, claim in _numbered(summary)
    ]


def _counted(summary: Summary) -> set[tuple[str, int]]:
    """Return the claims in the sums, by study and number."""
    return {
        (one.place.study, one.place.number)
        for one in counted(summary.studies)
        if not one.claim.apart
    }


def _numbered(summary: Summary) -> Iterator[tuple[StudyResult, int, Claim]]:
    for study in summary.studies:
        if study.findings is not None:
            for number, claim in enumerate(study.findings.claims, start=1):
                yield study, number, claim


def _provenance(summary: Summary) -> Items:
    now = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    earlier = ", ".join(summary.taken_in)
    seconds = sum(study.seconds for study in summary.studies)
    return [
        ("command", summary.command),
        *([("taken in", f"{earlier}: finished there before")] if earlier else []),
        ("penstock", __version__),
        ("python", platform.python_version()),
        *((name, metadata.version(name)) for name in PACKAGES),
        ("machine", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"),
        (
            "load",
            f"{os.getloadavg()[2]:.1f}, mean of the last 15 minutes; measured times depend on it",
        ),
        ("size", summary.size),
        ("seed", str(summary.seed)),
        ("cells", str(sum(study.cells for study in summary.studies))),
        ("computing time", f"{seconds:.0f} s over all cores"),
        (
            "this run",
            f"{time.time() - summary.began:.0f} s, ended {now} UTC; existing results were reused",
        ),
    ]


ERROR = "error.txt"
Say = Callable[[str], None]


def select(only: str | None) -> list[Study]:
    """Return the studies of a list of names ("io-sets,packs"), or all, in the order of a run."""
    names = [name.strip() for name in only.split(",")] if only is not None else studies.IN_ORDER
    selected = {name: studies.load(name) for name in names}
    return [selected[name] for name in studies.IN_ORDER if name in selected]


def run_all(
    selected: Sequence[Study],
    out: Path,
    workers: "Workers",
    *,
    size: Size,
    seed: int,
    say: Say = message,
) -> tuple[Summary, bool]:
    """Run studies and write one page, also when some fail or the run is interrupted.

    The page includes other studies whose complete results are in `out`. Return what it shows, and
    whether the run was interrupted.
    """
    if (out / RESULTS).exists():
        raise InputError(f"{out} has results of one study; choose another --out")
    make_directory(out)
    run = _Run(out=out, size=size, seed=seed, say=say)
    for study in selected:
        run.check(study)
    began = time.time()
    interrupted = False
    with workers:
        results, absent = run.earlier(selected)
        for number, study in enumerate(selected, start=1):
            label = f"[{number}/{len(selected)}] {study.name}"
            try:
                with workers.open() as pool:
                    results[study.name] = run.study(study, pool, label)
            except KeyboardInterrupt:
                interrupted = True
                results[study.name] = run.missing(
                    study, "interrupted", "the same command goes on from what is kept"
                )
                results |= {one.name: run.missing(one, "not run") for one in selected[number:]}
                break
            except Exception as error:
                rest = [one.campaign(size=size, seed=seed).alone for one in selected[number:]]
                results[study.name] = run.failed(study, error, then=workers.after(error, rest))
    summary = Summary(
        studies=[results[name] for name in studies.IN_ORDER if name in results],
        absent=absent,
        ran=[study.name for study in selected],
        size=size,
        seed=seed,
        began=began,
    )
    write_page(out, summary)
    return summary, interrupted


class Workers:
    """Where the studies run, one after the other; a context manager.

    Workers of this machine (`remote` is "") start again for each study, so that one that breaks
    them takes no other with it. Remote ones stay for all studies, since they may wait in a queue,
    until they fail.
    """

    def __init__(
        self, open_pool: Callable[[], AbstractContextManager[WorkerPool]], *, remote: str
    ) -> None:
        self._open_pool = open_pool
        self._remote = remote
        self._stack = ExitStack()
        self._pool: WorkerPool | None = None

    def __enter__(self) -> "Workers":
        """Refuse remote workers that are not possible before any work."""
        if self._remote:
            self._keep()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _keep(self) -> WorkerPool:
        self._pool = self._stack.enter_context(self._open_pool())
        return self._pool

    def _close(self) -> None:
        self._pool = None
        self._stack.close()

    @contextmanager
    def open(self) -> Iterator[WorkerPool]:
        """Return workers for one study; new ones if the last have failed."""
        if not self._remote:
            with self._open_pool() as pool:
                yield pool
            return
        try:
            yield self._pool or self._keep()
        except ExecutorError:
            self._close()
            raise

    def after(self, error: Exception, alone: Sequence[bool]) -> str:
        """Return what follows a failed study; `alone` are the remaining ones that run here."""
        if not alone:
            return ""
        if not self._remote or not isinstance(error, ExecutorError):
            return "; the others go on"
        return "; the others run here" if all(alone) else f"; the next asks {self._remote} again"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    out: Path
    size: Size
    seed: int
    say: Say

    def check(self, study: Study) -> None:
        """Refuse a directory with results of another run."""
        file = self.out / study.name / RESULTS
        if file.exists():
            with Journal(file, study.campaign(size=self.size, seed=self.seed).header):
                pass

    def earlier(self, selected: Sequence[Study]) -> tuple[dict[str, StudyResult], dict[str, str]]:
        """Return earlier results of studies that do not run now, and why others are left out."""
        results: dict[str, StudyResult] = {}
        absent: dict[str, str] = {}
        running = {study.name for study in selected}
        for name in studies.IN_ORDER:
            if name in running:
                continue
            study = studies.load(name)
            try:
                there = run_study.finished(study, self.out / name, size=self.size, seed=self.seed)
                if there is None:
                    absent[name] = ""
                    continue
                self.say(f"{name}: finished there before, and taken in")
                run_study.prepare(self.out / name)
                results[name] = self.write(study, there)
            except Exception as error:
                reason = str(error) if isinstance(error, InputError) else repr(error)
                absent[name] = f"left out: {reason}"
                self.say(f"{name} is left out: {reason}")
        return results, absent

    def study(self, study: Study, pool: WorkerPool, label: str) -> StudyResult:
        self.say(label)
        out = self.out / study.name
        run_study.prepare(out)
        results = run_study.run(
            study, out, size=self.size, seed=self.seed, pool=pool, label=label, say=self.say
        )
        return self.write(study, results)

    def write(self, study: Study, results: Results) -> StudyResult:
        written = run_study.write(study, results, self.out / study.name)
        (self.out / study.name / ERROR).unlink(missing_ok=True)
        return StudyResult(
            name=study.name,
            title=study.title,
            command=run_study.command(study.name, self.size, self.seed),
            findings=written.findings,
            pictures=written.pictures,
            provenance=written.provenance,
            cells=len(results.campaign.cells),
            seconds=sum(results.seconds.values()),
        )

    def missing(
        self, study: Study, state: Literal["failed", "interrupted", "not run"], problem: str = ""
    ) -> StudyResult:
        return StudyResult(
            name=study.name,
            title=study.title,
            command=run_study.command(study.name, self.size, self.seed),
            state=state,
            problem=problem,
        )

    def failed(self, study: Study, error: Exception, *, then: str) -> StudyResult:
        """Report a failed study; a file keeps the traceback of an internal error."""
        problem = str(error)
        if not isinstance(error, InputError | ExecutorError):
            problem = f"{type(error).__name__}: {problem}"
            out = self.out / study.name
            out.mkdir(parents=True, exist_ok=True)
            run_study.write_text(out / ERROR, "".join(traceback.format_exception(error)))
        self.say(f"{study.name} failed: {problem}{then}")
        return self.missing(study, "failed", problem)
