"""Public test suites, plainly and managed in each set-up: does any case end otherwise?

`make suites` runs it, with PENSTOCK_SUITES naming a folder of suites that no package has. In it,
all optional:

    fsx              the program of xfstests (ltp/fsx.c)
    ltp/             an installed Linux Test Project: testcases/bin, runtest/syscalls
    pjdfstest/       a built pjdfstest: the program and tests/
    ior, mdtest      the programs of IOR, which run under mpirun
    NAME.version     what is printed as the version of NAME, or NAME/version

fio and CPython's tests (Debian: libpython3.11-testsuite) are those of the system. Every case runs
in a directory of its own. One that ends otherwise than plainly runs again both ways: what then
differs again is a difference, what does not is named unsteady. Ends with 1 where there is a
difference.
"""

import argparse
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from live.client.set_ups import SET_UPS, SetUp, set_up

LONGEST = 60.0
"""Seconds that a case may take; one that takes longer ends by it, and proves nothing."""
TOO_LONG = "took too long"
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A command that runs in a directory of its own, and what to compare of it."""

    name: str
    command: list[str]
    outcome: Callable[[int, str, Path], str]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Suite:
    name: str
    version: str
    cases: list[Case]


def status_alone(status: int, _: str, __: Path) -> str:
    return str(status)


def fsx(folder: Path) -> Suite:
    program = _given(folder / "fsx")

    def outcome(status: int, _: str, where: Path) -> str:
        data = where / "file"
        return f"{status} {hashlib.sha256(data.read_bytes()).hexdigest()[:12]}"

    variants = {"": [], " without mmap": ["-R", "-W"], " unaligned small": ["-l", "40000"]}
    cases = [
        Case(
            name=f"seed {seed}{variant}",
            command=[program, "-q", "-N", "4000", "-S", str(seed), *options, "file"],
            outcome=outcome,
        )
        for seed in (1, 2, 3)
        for variant, options in variants.items()
    ]
    return Suite(name="fsx", version=_version(folder, "fsx"), cases=cases)


ENGINES = "sync psync vsync pvsync pvsync2 libaio io_uring posixaio mmap"


def fio(_: Path) -> Suite:
    program = _path_of("fio")
    ways = {
        "threads": ["--thread", "--numjobs=2"],
        "fsync": ["--fsync=8"],
        "random": ["--rw=randwrite", "--bsrange=512-64k"],
        "direct": ["--direct=1", "--bs=8k"],
    }
    cases = [
        Case(
            name=f"{engine} {way}",
            command=[
                *(program, "--name=job", f"--ioengine={engine}", "--size=4m", "--rw=write"),
                *("--bs=12k", "--verify=sha256", "--verify_fatal=1", "--verify_state_save=0"),
                *("--iodepth=4", "--output-format=terse", *options),
            ],
            outcome=status_alone,
        )
        for engine in ENGINES.split()
        for way, options in ways.items()
    ]
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return Suite(name="fio, verify", version=version.stdout.strip(), cases=cases)


FILE_CALLS = (
    "access chdir chmod chown close close_range copy_file_range creat dup dup2 dup3 faccessat "
    "fallocate fchmod fchown fcntl fdatasync flock fstat fsync ftruncate getdents io_submit "
    "link linkat lseek llseek mkdir mknod mmap msync open openat pread preadv preadv2 pwrite "
    "pwritev pwritev2 read readahead readv rename renameat rmdir sendfile splice stat statx "
    "symlink sync_file_range tee truncate unlink unlinkat utime utimes utimensat vfork vmsplice "
    "write writev posix_fadvise memfd_create pipe umask"
)


def ltp(folder: Path) -> Suite:
    root = folder / "ltp"
    programs = Path(_given(root / "testcases/bin"))
    names = FILE_CALLS.replace(" ", "|")
    unshare = [_path_of("unshare"), "--mount"] if os.geteuid() == 0 else []
    wanted = re.compile(rf"(?:{names})\d+[A-Z]?(?:_64)?$")
    cases = []
    for line in (root / "runtest/syscalls").read_text().splitlines():
        name, _, command = line.partition(" ")
        if not wanted.match(name) or not (programs / command.split()[0]).is_file():
            continue
        cases.append(
            Case(
                name=name,
                # Some mount file systems, and leave them where they fail.
                command=[*unshare, "sh", "-c", f"TMPDIR=$PWD exec {command}"],
                outcome=_ltp_outcome,
                environment={
                    "LTPROOT": str(root),
                    "PATH": f"{programs}:{os.environ['PATH']}",
                    "KCONFIG_SKIP_CHECK": "1",
                    "LTP_SINGLE_FS_TYPE": "tmpfs",
                    "LTP_COLORIZE_OUTPUT": "0",
                },
            )
        )
    return Suite(name="LTP, file calls", version=_version(folder, "ltp"), cases=cases)


def _ltp_outcome(status: int, output: str, _: Path) -> str:
    kinds = ("TPASS", "TFAIL", "TBROK", "TCONF")
    return " ".join([str(status), *(f"{kind}={output.count(kind + ':')}" for kind in kinds)])


def pjdfstest(folder: Path) -> Suite:
    if os.geteuid() != 0:
        raise NotHereError("needs root")
    root = folder / "pjdfstest"
    _given(root / "pjdfstest")
    groups = ("open", "truncate", "ftruncate", "posix_fallocate", "chmod", "unlink", "mkfifo")
    cases = [
        Case(
            name=f"{group}/{script.stem}",
            command=["sh", str(script)],
            outcome=lambda status, output, _: (
                f"{status} ok={len(re.findall('^ok', output, re.M))} "
                f"not={','.join(re.findall('^not ok ([0-9]+)', output, re.M))}"
            ),
        )
        for group in groups
        for script in sorted((root / "tests" / group).glob("*.t"))
    ]
    return Suite(name="pjdfstest", version=_version(folder, "pjdfstest"), cases=cases)


MODULES = (
    "test_bufio test_bz2 test_dbm test_dbm_dumb test_fcntl test_file test_file_eintr "
    "test_fileinput "
    "test_fileio test_filecmp test_fork1 test_genericpath test_glob test_gzip test_io test_ioctl "
    "test_largefile test_linecache test_lzma test_mailbox test_marshal test_memoryio test_mmap "
    "test_netrc test_ntpath test_openpty test_os test_pathlib test_pickle test_pipes test_popen "
    "test_posix test_posixpath test_pty test_select test_selectors test_shelve test_shutil "
    "test_signal test_stat test_subprocess test_sunau test_tarfile test_tempfile test_univnewlines "
    "test_wait3 test_wait4 test_wave test_zipfile test_zipapp"
)


def cpython(_: Path) -> Suite:
    program = "/usr/bin/python3"
    _given(Path(program))
    where = "import sys, test.support as s; print(sys.version.split()[0], s.__file__)"
    answer = subprocess.run([program, "-c", where], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise NotHereError("CPython's tests are not installed (Debian: libpython3.11-testsuite)")
    version, tests = answer.stdout.split()
    cases = [
        Case(
            name=module,
            command=["sh", "-c", f"TMPDIR=$PWD exec {program} -m test -v {module}"],
            outcome=_unittest_outcome,
        )
        for module in MODULES.split()
        if (Path(tests).parents[1] / f"{module}.py").exists()
    ]
    return Suite(name="CPython, file tests", version=version, cases=cases)


def _unittest_outcome(status: int, output: str, _: Path) -> str:
    ran = sum(map(int, re.findall(r"^Ran (\d+) tests?", output, re.M)))
    bad = sorted(set(re.findall(r"^(?:FAIL|ERROR): (\S+)", output, re.M)))
    return f"{status} ran={ran} {' '.join(bad)}".strip()


def ior(folder: Path) -> Suite:
    program = _given(folder / "ior")
    run = [_path_of("mpirun"), "--oversubscribe", "-n", "2", program]
    check = ["-C", "-e", "-w", "-W", "-r", "-R", "-G", "27"]
    sizes = {
        "64k": ["-t", "64k", "-b", "256k", "-s", "4"],
        "1m": ["-t", "1m", "-b", "2m", "-s", "2"],
    }
    cases = [
        Case(
            name=f"{api} {size}{' each its file' if own else ''}",
            command=[*run, "-a", api, *options, *check, *own, "-o", "data"],
            outcome=lambda status, output, _: f"{status} {_wrong(output)}",
            environment=MPI,
        )
        for api in ("POSIX", "MPIIO")
        for size, options in sizes.items()
        for own in ([], ["-F"])
    ]
    return Suite(name="IOR, verified", version=_version(folder, "ior"), cases=cases)


def mdtest(folder: Path) -> Suite:
    program = _given(folder / "mdtest")
    run = [_path_of("mpirun"), "--oversubscribe", "-n", "2", program, "-n", "20", "-d", "tree"]
    data = ["-w", "3901", "-e", "3901", "-X"]
    cases = [
        Case(
            name=name,
            command=[*run, *options],
            outcome=lambda status, output, _: f"{status} {_wrong(output)}",
            environment=MPI,
        )
        for name, options in {"shared": data, "own trees": [*data, "-u"], "files": ["-F"]}.items()
    ]
    return Suite(name="mdtest, verified", version=_version(folder, "mdtest"), cases=cases)


def _wrong(output: str) -> int:
    return len(re.findall(r"incorrect|verification (?:failed|error)|ERROR", output, re.I))


SUITES: dict[str, Callable[[Path], Suite]] = {
    "fsx": fsx,
    "fio": fio,
    "ltp": ltp,
    "pjdfstest": pjdfstest,
    "cpython": cpython,
    "ior": ior,
    "mdtest": mdtest,
}


class NotHereError(Exception):
    """Why a suite does not run."""


def _given(path: Path) -> str:
    if not path.exists():
        raise NotHereError(f"{path} does not exist")
    return str(path)


def _path_of(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise NotHereError(f"{program} is not installed")
    return path


def _version(folder: Path, name: str) -> str:
    for path in (folder / f"{name}.version", folder / name / "version", folder / name / "VERSION"):
        if path.is_file():
            return path.read_text().strip()
    return "not said"


def run_case(case: Case, job: SetUp, *, managed: bool) -> str:
    """Return how a case ended."""
    base = job.root if managed else job.plain
    where = base / "case" / "of"
    where.mkdir(parents=True)
    (base / "case").chmod(0o755)
    environment = os.environ | (job.agent.environment() if managed else {}) | case.environment
    # Into a file: what a case leaves running must not be waited for.
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(
            case.command,
            cwd=where,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(LONGEST)
            output.seek(0)
            return case.outcome(status, output.read(), where)
        except subprocess.TimeoutExpired:
            return TOO_LONG
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            shutil.rmtree(base / "case", ignore_errors=True)


def differing(suite: Suite, plain: dict[str, str], job: SetUp) -> Iterator[tuple[str, str]]:
    """Yield the cases that do not end as they do plainly, and in what way."""
    for case in suite.cases:
        if plain[case.name] == TOO_LONG:
            continue
        managed = run_case(case, job, managed=True)
        if managed == plain[case.name]:
            continue
        again = [run_case(case, job, managed=way) for way in (False, True)]
        how = f"plain {plain[case.name]} and {again[0]}; managed {managed} and {again[1]}"
        steady = plain[case.name] == again[0] and again[0] != again[1]
        yield case.name, how if steady else f"unsteady: {how}"


def run_suite(suite: Suite, set_ups: list[str]) -> bool:
    """Print a suite's row and notes; say whether it held."""
    with set_up("no I/O nodes") as job:
        plain = {case.name: run_case(case, job, managed=False) for case in suite.cases}
    passed = sum(outcome.split()[0] == "0" for outcome in plain.values())
    cells, notes, held = [], [], True
    for name in set_ups:
        with set_up(name) as job:
            differences = dict(differing(suite, plain, job))
            moved = job.pages.total("write_bytes") + job.pages.total("read_bytes")
        unsteady = sum(how.startswith("unsteady") for how in differences.values())
        cells.append(
            "same" if len(differences) == unsteady else f"{len(differences) - unsteady} differ"
        )
        cells[-1] += f" ({moved / 1e6:.1f} MB)"
        held = held and len(differences) == unsteady
        notes += [f"{suite.name}, {name}: {case}: {how}" for case, how in differences.items()]
    late = sum(outcome == TOO_LONG for outcome in plain.values())
    row = [suite.name, suite.version, str(len(plain))]
    row += [f"{passed} pass" + f", {late} too long" * (late > 0), *cells]
    print(f"| {' | '.join(row)} |", *notes, sep="\n", flush=True)
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("suite", nargs="*", choices=[*SUITES, []], help="only these")
    parser.add_argument("--set-up", action="append", choices=SET_UPS, help="only these")
    arguments = parser.parse_args()
    folder = Path(os.environ.get("PENSTOCK_SUITES", "/nowhere")).resolve()
    set_ups = arguments.set_up or list(SET_UPS)
    print("| suite | version | cases | plain |", *(f"{name} |" for name in set_ups))
    print(f"|{'---|' * (4 + len(set_ups))}", flush=True)
    held = True
    for name in arguments.suite or SUITES:
        try:
            suite = SUITES[name](folder)
        except NotHereError as error:
            print(f"{name}: not run: {error}", flush=True)
            continue
        held = run_suite(suite, set_ups) and held
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
