"""The sdist and the wheel: what is in them, what they ask of a system, and that they work there.

Both are built once, by what `make wheel` runs.
"""

import email
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from importlib.metadata import distribution
from pathlib import Path

import pytest
from distribution.bare_root import HOME, USER, BareRoot
from distribution.installed import WRITTEN

ROOT = Path(__file__).parents[2]
WITHIN = 900.0
"""Seconds: the whole package is compiled, perhaps beside much else."""
pytestmark = pytest.mark.timeout(WITHIN)
PRELOADED = [
    f"penstock/live/protocol/libpenstock_{name}.so"
    for name in ("client", "emulator", "emulator_link")
]
GENERATED = "_page_layout.py"
"""The module that the build generates."""
OLDEST_GLIBC = (2, 17)
EXTRAS = {"darshan", "ftio", "dask", "mpi", "postgres"}
BUILDS = re.compile(
    r"(.*-)?(cc|c\+\+|gcc|g\+\+|cpp|clang|clang\+\+|tcc|icx|nvc|cc1|cc1plus|collect2|ld|as|gfortran"
    r"|rustc|cargo|go|cmake|ninja|make|meson)(-[\d.]+)?"
)
"""Names of programs that a package can be built with."""
LOOK = f"""
import os, re
builds = re.compile({BUILDS.pattern!r})
seen = 0
for folder, folders, files in os.walk("/"):
    if folder == "/":
        folders[:] = [name for name in folders if name not in ("proc", "dev")]
    for name in files:
        seen += 1
        path = os.path.join(folder, name)
        if builds.fullmatch(name) and os.access(path, os.X_OK):
            print(path)
print("looked at", seen)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dist:
    """What `make wheel` leaves."""

    sdist: Path
    wheel: Path
    log: str

    def files(self) -> dict[str, bytes]:
        """Return what is in the wheel."""
        with zipfile.ZipFile(self.wheel) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist() if name[-1] != "/"}

    def metadata(self) -> Message:
        """Return what an index would know of the wheel."""
        (text,) = (t for name, t in self.files().items() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(text)


def run(*words: str | Path, within: float = WITHIN, cwd: Path | None = None) -> str:
    """Run a command with this environment's programs; return what it says."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        list(map(str, words)),
        env=os.environ | {"PATH": path, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
        cwd=cwd,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module", autouse=True)
def readable() -> Iterator[None]:
    """What is built and laid out here is for others, whatever the umask of who runs the tests."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Dist:
    folder = tmp_path_factory.mktemp("dist")
    log = run(ROOT / "deploy/build-wheel", folder)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return Dist(sdist=sdist, wheel=wheel, log=log)


def test_the_wheel_has_a_tag_that_an_index_takes(dist: Dist) -> None:
    """`linux_x86_64` says nothing of the system that it was built on, and is refused."""
    python = f"cp3{sys.version_info.minor}"
    abi = python if sys.version_info < (3, 12) else "abi3"
    name = rf"penstock-[\d.]+-({python}|cp312)-{abi}-manylinux_2_\d+_x86_64\.whl"
    assert re.fullmatch(name, dist.wheel.name)
    assert "manylinux_2_" in dist.log


def test_both_are_what_an_index_takes_and_the_readme_is_rendered(dist: Dist) -> None:
    assert dist.log.count("PASSED") == 2
    metadata = dist.metadata()
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == (ROOT / "README.md").read_text()
    assert metadata["License-Expression"] == "MIT"


def test_a_bill_of_materials_lies_beside_the_wheel(dist: Dist) -> None:
    bill = json.loads(dist.wheel.with_suffix(".cdx.json").read_text())
    itself = bill["metadata"]["component"]
    assert itself["version"] == dist.metadata()["Version"]
    assert itself["hashes"][0]["content"] == hashlib.sha256(dist.wheel.read_bytes()).hexdigest()


def test_extras_are_declared(dist: Dist) -> None:
    metadata = dist.metadata()
    assert set(metadata.get_all("Provides-Extra", [])) == EXTRAS
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = metadata.get_all("Requires-Dist", [])
    assert len(needed) == len(wanted["dependencies"]) + sum(
        map(len, wanted["optional-dependencies"].values())
    )


def test_every_extra_is_told_where_it_is_installed() -> None:
    page = (ROOT / "docs/get-started/install.md").read_text()
    assert {name for name in EXTRAS if f"| `{name}` |" in page} == EXTRAS


def test_the_wheel_has_what_the_checkout_has(dist: Dist) -> None:
    """The wheel is built from the sdist. What the sdist left out would be missing in it.

    The package's files of the checkout, and what its own build has installed beside them.
    """
    listed = run("git", "ls-files", "src/penstock", cwd=ROOT).splitlines()
    native = [
        str(file)
        for file in distribution("penstock").files or []
        if file.parts[0] == "penstock" and (file.suffix == ".so" or file.name == GENERATED)
    ]
    assert len(native) == 8
    contents = {name for name in dist.files() if not name.split("/")[0].endswith(".dist-info")}
    assert contents == {name.removeprefix("src/") for name in listed} | set(native)


def test_the_wheel_has_nothing_else(dist: Dist) -> None:
    kinds = {Path(name).suffix or Path(name).name for name in dist.files()}
    usual = {".py", ".pyi", ".so", ".csv", ".json", ".toml", ".txt", ".typed"}
    page = {".html", ".css", ".js", ".svg", ".png", ".ico", ".woff2"}
    about = {"METADATA", "RECORD", "WHEEL", "LICENSE"}
    assert kinds <= usual | page | about
    tops = {name.split("/")[0] for name in dist.files()}
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert tops == {"penstock", f"penstock-{version}.dist-info"}


def test_the_sdist_has_what_builds_and_tests_it(dist: Dist) -> None:
    with tarfile.open(dist.sdist) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    listed = run("git", "ls-files", cwd=ROOT).splitlines()
    kept = {name for name in listed if not name.startswith((".ci/", ".gitignore"))}
    assert kept - names == set()
    assert names - set(listed) <= {"PKG-INFO"} | untracked()


def untracked() -> set[str]:
    """Files that are not in git yet, and not ignored either."""
    listing = run("git", "ls-files", "--others", "--exclude-standard", cwd=ROOT)
    return set(listing.splitlines())


def test_repair_leaves_the_preloaded_libraries_alone(dist: Dist) -> None:
    """A grafted library or a new run path would follow them into every program."""
    names = dist.files()
    assert [name for name in names if ".libs/" in name] == []
    for name in PRELOADED:
        assert name in names


@pytest.mark.parametrize("name", PRELOADED, ids=lambda name: Path(name).stem)
def test_a_preloaded_library_asks_for_an_old_libc_and_no_more(
    dist: Dist, name: str, tmp_path: Path
) -> None:
    """Programs of any age are given it."""
    library = tmp_path / "library.so"
    library.write_bytes(dist.files()[name])
    dynamic = run("readelf", "--dynamic", "--wide", library)
    assert set(re.findall(r"NEEDED.*\[(.*)\]", dynamic)) <= {
        "libc.so.6",
        "libdl.so.2",
        "libpthread.so.0",
        "ld-linux-x86-64.so.2",
    }
    assert re.findall(r"RPATH|RUNPATH", dynamic) == []
    assert re.findall(r"SONAME.*\[(.*)\]", dynamic) == [Path(name).name]
    versions = run("readelf", "--version-info", "--wide", library)
    required = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", versions)}
    assert required
    assert max(required) <= OLDEST_GLIBC


def test_cibuildwheel_builds_one_for_3_11_and_one_for_all_later_ones() -> None:
    identifiers = run("cibuildwheel", "--platform", "linux", "--print-build-identifiers", ROOT)
    assert identifiers.split() == ["cp311-manylinux_x86_64", "cp312-manylinux_x86_64"]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    script = settings["cibuildwheel"]["test-command"].split("{project}/")[1]
    assert (ROOT / script).is_file()
    assert settings["scikit-build"]["wheel"]["py-api"] == "cp312"


@pytest.fixture(scope="module")
def bare(dist: Dist, tmp_path_factory: pytest.TempPathFactory) -> tuple[BareRoot, Path]:
    """A machine without a compiler, with the wheel and the wheels that it needs."""
    wheels = tmp_path_factory.mktemp("wheels")
    # As docs/get-started/install.md says for a site without a network.
    download = ("-m", "pip", "download", "--quiet", "--only-binary", ":all:", "--dest", wheels)
    run(sys.executable, *download, dist.wheel)
    wheels.chmod(0o755)
    # A checkout may be its owner's alone.
    Path(shutil.copy(Path(__file__).with_name("installed.py"), wheels)).chmod(0o644)
    folder = tmp_path_factory.mktemp("bare") / "root"
    return BareRoot(folder, [wheels]), wheels


def test_it_installs_and_works_where_no_compiler_is(
    bare: tuple[BareRoot, Path], dist: Dist
) -> None:
    """A fresh environment of a user who is not root, outside of any checkout, from files alone."""
    machine, wheels = bare
    looked = machine.run(machine.python, "-c", LOOK)
    assert re.fullmatch(r"looked at \d{4,}\n", looked.stdout), looked.stdout + looked.stderr
    python = HOME / "venv/bin/python"
    install = ("-m", "pip", "install", "--quiet", "--no-compile", "--no-index", "--find-links")
    for step in (
        (machine.python, "-m", "venv", HOME / "venv"),
        (python, *install, wheels, wheels / dist.wheel.name),
    ):
        done = machine.run(*step)
        assert done.returncode == 0, f"{step}\n{done.stdout}\n{done.stderr}"
    done = machine.run(python, wheels / "installed.py")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["package"].startswith(f"{HOME}/venv/")
    assert (report["user"], report["forwarded"]) == (USER, WRITTEN)
    assert report["simulated"]["utilization"] > 0
    # With all that was installed there is still none.
    assert machine.run(machine.python, "-c", LOOK).stdout.startswith("looked at")
