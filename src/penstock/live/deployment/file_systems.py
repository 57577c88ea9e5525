"""The file systems of a deployment: those of the configuration, and the --root options.

A directory belongs to one file system. Directories may be nested, as mounts are: a file belongs to
the longest one that it is below.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.config import Config
from penstock.errors import InputError
from penstock.live.deployment.spec import DEFAULT_FILE_SYSTEM, check_roots
from penstock.live.protocol import shared_page
from penstock.model import FileSystem

_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._+-]{0,39})=(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Root:
    """A directory and its file system, with the place where they were given."""

    file_system: str
    path: Path
    source: str


def file_systems_of(config: Config, options: Sequence[str]) -> list[FileSystem]:
    """Return the file systems, with resolved directories; raise InputError for impossible ones.

    `options` are those of --root: NAME=DIR, or DIR for the default file system. (Write ./a=b for a
    directory with such a name.)
    """
    bandwidths = {name: each.bandwidth for name, each in config.site.declared().items()}
    roots = [*_from_config(config), *map(_from_option, options)]
    if not roots:
        raise InputError(
            "no directory to manage; give at least one with --root DIR, or in [site.file-systems]"
        )
    if len(roots) > shared_page.ROOTS:
        raise InputError(f"{len(roots)} managed directories; give at most {shared_page.ROOTS}")
    given: dict[str, dict[str, None]] = {name: {} for name in bandwidths}
    owners: dict[str, _Root] = {}
    for root in roots:
        path = _checked(root)
        other = owners.setdefault(path, root)
        if other.file_system != root.file_system:
            raise InputError(
                f"{root.source}: {path} is a directory of file system {other.file_system!r} too; "
                "a directory belongs to one"
            )
        given.setdefault(root.file_system, {})[path] = None
    return [
        FileSystem(name=name, roots=tuple(paths), bandwidth=bandwidths.get(name))
        for name, paths in given.items()
    ]


def roots_of(file_systems: Iterable[FileSystem]) -> list[str]:
    """Return all managed directories."""
    return [root for each in file_systems for root in each.roots]


def mixed_devices(file_systems: Iterable[FileSystem]) -> str | None:
    """Return a warning if directories given without a name are on several devices."""
    for each in file_systems:
        if each.name == DEFAULT_FILE_SYSTEM and len({_device(root) for root in each.roots}) > 1:
            return (
                f"{', '.join(each.roots)} are on different devices and count as one file system: "
                "their jobs wait for each other; if they are several, give each a name, "
                "--root NAME=DIR"
            )
    return None


def _from_config(config: Config) -> Iterator[_Root]:
    for name, section in config.site.file_systems.items():
        for path in section.roots:
            source = f"site.file-systems.{name}"
            yield _Root(file_system=name, path=Path(path).expanduser(), source=source)


def _from_option(text: str) -> _Root:
    named = _NAMED.fullmatch(text)
    name, path = (DEFAULT_FILE_SYSTEM, text) if named is None else named.groups()
    return _Root(file_system=name, path=Path(path), source="--root")


def _checked(root: _Root) -> str:
    try:
        return check_roots((root.path,))[0]
    except InputError as error:
        text = str(error)
        raise InputError(
            text if root.source == "--root" else f"{root.source}: {text.removeprefix('--root ')}"
        ) from error


def _device(root: str) -> int:
    return Path(root).stat().st_dev
