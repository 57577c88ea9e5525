"""Policies of the user's own, in files that workers elsewhere must see as well."""

import ast
import hashlib
import platform
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import penstock
from penstock.errors import InputError
from penstock.files import reason

MARK = ".py:"
PYTHON = ("stdlib", "platstdlib")
INSTALLED = {"site-packages", "dist-packages"}
"""Folders of what is installed, which stays as it is while campaigns run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFile:
    """A policy in a file: its name from anywhere, and what the file says."""

    path: str
    attribute: str
    digest: str

    @property
    def name(self) -> str:
        """The policy's name for the registry."""
        return f"{self.path}:{self.attribute}"

    def check(self) -> None:
        """Raise unless this host has the same file."""
        advice = "put it where all workers see it, or run --on local"
        try:
            digest = _digest(Path(self.path))
        except OSError as error:
            raise InputError(
                f"a worker on {platform.node()} cannot read the policy file {self.path} "
                f"({reason(error)}); {advice}"
            ) from error
        if digest != self.digest:
            raise InputError(
                f"a worker on {platform.node()} has another policy file {self.path}; {advice}"
            )

    def check_alone(self) -> None:
        """Raise if it imports files of the user's own: whether those changed would go unseen."""
        for module in _imported(Path(self.path)):
            file = _own(module)
            if file is not None:
                raise InputError(
                    f"policy file {self.path}: with --out or --on a policy is one file; it imports "
                    f"{file.name} ({file}), whose changes would not be seen; put both into one "
                    "file, or install what it imports as a package"
                )


def policy_files(policies: Iterable[str]) -> dict[str, PolicyFile]:
    """Return the files of those policies that are named by one."""
    files = {}
    for policy in policies:
        if MARK in policy:
            file, _, attribute = policy.rpartition(":")
            path = Path(file).resolve()
            files[policy] = PolicyFile(path=str(path), attribute=attribute, digest=_digest(path))
    return files


def _imported(path: Path) -> Iterator[str]:
    """Yield the names of the modules that a file imports, anywhere in it.

    From its text: a module that is imported later, or was before, must be found as well. What is
    imported from a module is yielded too, whether or not it is a module itself.
    """
    for node in ast.walk(ast.parse(path.read_bytes())):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                yield module


def _own(module: str) -> Path | None:
    """Return a module's file, unless it is Python's, Penstock's, or installed."""
    first = module.partition(".")[0]
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None and first not in sys.modules:
        spec = find_spec(first)
        file = spec.origin if spec is not None and spec.has_location else None
    if file is None:
        return None
    path = Path(file).resolve()
    roots = [Path(penstock.__file__).parent, *(Path(sysconfig.get_path(name)) for name in PYTHON)]
    installed = any(path.is_relative_to(root.resolve()) for root in roots)
    return None if installed or INSTALLED & set(path.parts) else path


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextmanager
def policy_errors(*policies: str) -> Iterator[None]:
    """Report what a policy in a user's file raises as one InputError with file and line."""
    try:
        yield
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        own = [policy for policy in policies if MARK in policy]
        if not own:
            raise
        files = {Path(policy.rpartition(":")[0]).resolve() for policy in own}
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame for frame in frames if Path(frame.filename).resolve() in files]
        if isinstance(error, MemoryError) and not lines:
            raise  # of the workload
        if lines:
            where = f"{Path(lines[-1].filename).name}, line {lines[-1].lineno}"
        else:
            where = "not in a line of its file, but by what one of its methods returned"
        what = f"{type(error).__name__}: {error} ({where})"
        raise InputError(f"policy {' or '.join(map(repr, own))} failed: {what}") from error
