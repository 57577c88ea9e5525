"""Writes a wheel's bill of materials beside it, as CycloneDX: `sbom.py WHEEL`.

What it needs comes from the wheel's own metadata, in the versions of deploy/requirements; what is
compiled into it from the environment that built it. The same wheel has the same bill.
"""

import hashlib
import os
import re
import sys
import uuid
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from email.parser import HeaderParser
from importlib.metadata import version
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCKED = Path(__file__).parent / "requirements"
COMPILED_IN = ("nanobind",)
"""Libraries of the build that are linked into the native modules."""
_PIN = re.compile(r"^([\w.-]+)==([^ ;\\]+)(?: ; ([^\\]+?))? \\$", re.MULTILINE)


def locked(name: str) -> dict[str, list[tuple[str, str]]]:
    """Return the versions of each package of a lock file, with the marker of each."""
    versions: dict[str, list[tuple[str, str]]] = {}
    for package, number, marker in _PIN.findall((LOCKED / f"{name}.txt").read_text()):
        versions.setdefault(canonicalize_name(package), []).append((number, marker))
    return versions


def component(name: str, number: str, scope: ComponentScope, marker: str = "") -> Component:
    """Return a package of PyPI."""
    return Component(
        name=name,
        version=number,
        type=ComponentType.LIBRARY,
        scope=scope,
        purl=PackageURL("pypi", name=name, version=number),
        bom_ref=f"{name}=={number}",
        properties=[Property(name="penstock:marker", value=marker)] if marker else [],
    )


def components() -> Iterator[Component]:
    """Yield what runs with the wheel, with its extras, and in it."""
    required = locked("runtime")
    for name, pins in locked("extras").items():
        scope = ComponentScope.REQUIRED if name in required else ComponentScope.OPTIONAL
        for number, marker in pins:
            yield component(name, number, scope, marker)
    for name in COMPILED_IN:
        yield component(name, version(name), ComponentScope.REQUIRED)


def bill(wheel: Path) -> Bom:
    """Return the bill of materials of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (file,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(file).decode())
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    itself = Component(
        name=metadata["Name"],
        version=metadata["Version"],
        type=ComponentType.APPLICATION,
        description=metadata["Summary"],
        licenses=[DisjunctiveLicense(id=metadata["License-Expression"])],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
        purl=PackageURL("pypi", name=metadata["Name"], version=metadata["Version"]),
        bom_ref=wheel.name,
    )
    parts = list(components())
    bom = Bom(components=parts, serial_number=uuid.uuid5(uuid.NAMESPACE_OID, digest))
    bom.metadata.component = itself
    made = int(os.environ.get("SOURCE_DATE_EPOCH", wheel.stat().st_mtime))
    bom.metadata.timestamp = datetime.fromtimestamp(made, UTC)
    direct = {
        canonicalize_name(Requirement(text).name) for text in metadata.get_all("Requires-Dist")
    }
    bom.register_dependency(itself, [p for p in parts if p.name in direct | {*COMPILED_IN}])
    missing = direct - {part.name for part in parts}
    if missing:
        sys.exit(f"deploy/requirements lacks {', '.join(sorted(missing))}; run lock-dependencies")
    return bom


if __name__ == "__main__":
    wheel = Path(sys.argv[1])
    wheel.with_suffix(".cdx.json").write_text(JsonV1Dot6(bill(wheel)).output_as_string(indent=2))
