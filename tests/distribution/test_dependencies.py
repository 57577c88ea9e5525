"""Dependencies are locked with hashes, and a wheel's bill of materials names them."""

import hashlib
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKED = ROOT / "deploy" / "requirements"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
GROUPS: dict[str, list[Any]] = PROJECT["dependency-groups"]
PIN = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


def named(requirements: list[Any]) -> set[str]:
    names = set[str]()
    for each in requirements:
        if isinstance(each, dict):
            names |= named(GROUPS[each["include-group"]])
        else:
            names.add(canonicalize_name(Requirement(each).name))
    return names


RUNTIME = named(PROJECT["project"]["dependencies"])
EXTRAS = named(
    [text for each in PROJECT["project"]["optional-dependencies"].values() for text in each]
)
LOCKS = {
    "runtime": RUNTIME,
    "extras": RUNTIME | EXTRAS,
    "build": RUNTIME | named(GROUPS["package"]) | named(PROJECT["build-system"]["requires"]),
    "development": RUNTIME | named([text for name in GROUPS for text in GROUPS[name]]),
}


def pins(lock: str) -> dict[str, str]:
    return dict(PIN.findall((LOCKED / f"{lock}.txt").read_text()))


def test_each_lock_is_looked_at() -> None:
    assert {path.stem for path in LOCKED.iterdir()} == set(LOCKS)


@pytest.mark.parametrize("lock", LOCKS)
def test_what_pyproject_asks_for_is_locked(lock: str) -> None:
    """Run deploy/lock-dependencies after a change."""
    assert LOCKS[lock] <= set(pins(lock))


@pytest.mark.parametrize("lock", LOCKS)
def test_every_version_has_hashes_and_no_source_is_named(lock: str) -> None:
    text = (LOCKED / f"{lock}.txt").read_text()
    blocks = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert blocks
    for block in blocks:
        head, *hashes = block.strip().split(" \\\n")
        assert re.fullmatch(r"[\w.-]+==[\w.!+-]+( ; .+)?", head), head
        assert hashes, head
        assert all(re.fullmatch(r" *--hash=sha256:[0-9a-f]{64}", line) for line in hashes), head
    assert "://" not in text


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel with this project's metadata; test_wheel.py has the real one."""
    path = tmp_path_factory.mktemp("wheel") / "penstock-1.2.3-cp312-abi3-linux_x86_64.whl"
    project = PROJECT["project"]
    lines = ["Metadata-Version: 2.4", "Name: penstock", "Version: 1.2.3"]
    lines += [f"Summary: {project['description']}", f"License-Expression: {project['license']}"]
    lines += [f"Requires-Dist: {text}" for text in project["dependencies"]]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("penstock-1.2.3.dist-info/METADATA", "\n".join([*lines, "", ""]))
    return path


@pytest.fixture(scope="module")
def bill(wheel: Path) -> str:
    subprocess.run([sys.executable, ROOT / "deploy" / "sbom.py", wheel], check=True)
    return wheel.with_suffix(".cdx.json").read_text()


def test_the_bill_is_valid_and_of_this_wheel(wheel: Path, bill: str) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill) is None
    itself = json.loads(bill)["metadata"]["component"]
    assert (itself["name"], itself["version"], itself["purl"]) == (
        "penstock",
        "1.2.3",
        "pkg:pypi/penstock@1.2.3",
    )
    assert itself["licenses"] == [{"license": {"id": PROJECT["project"]["license"]}}]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert itself["hashes"] == [{"alg": "SHA-256", "content": digest}]


def test_the_bill_names_what_runs_with_the_wheel_and_what_is_compiled_in(bill: str) -> None:
    content = json.loads(bill)
    scopes = {(each["name"], each["version"]): each["scope"] for each in content["components"]}
    for name, number in pins("runtime").items():
        assert scopes[canonicalize_name(name), number] == "required"
    names = {name for name, _ in scopes}
    assert names >= {"nanobind"} | EXTRAS
    assert all(each["purl"].startswith("pkg:pypi/") for each in content["components"])
    (itself,) = (d for d in content["dependencies"] if d["ref"].endswith(".whl"))
    assert {ref.partition("==")[0] for ref in itself["dependsOn"]} == RUNTIME | {"nanobind"}


def test_the_same_wheel_has_the_same_bill(wheel: Path, bill: str) -> None:
    subprocess.run([sys.executable, ROOT / "deploy" / "sbom.py", wheel], check=True)
    assert wheel.with_suffix(".cdx.json").read_text() == bill
