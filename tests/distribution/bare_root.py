"""A root directory with Python, its shared libraries and a few programs, and nothing to build with.

Made of bind mounts in a mount namespace, entered with chroot: what is not listed here is not there.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

PROGRAMS = ("sh", "cat", "chmod", "dd", "env", "id", "ls", "mkdir", "setpriv", "uname")
USER = 4711
"""Somebody who is nobody on this machine."""
HOME = Path("/home/ada")

# All of it in a namespace of its own: it is gone with the last process.
ENTER = """
set -eu
root=$1 user=$2; shift 2
mount --make-rprivate /
while read -r from to how; do
    case $how in
    empty) mount -t tmpfs -o mode=755 none "$root$to" ;;
    *) mount --rbind "$from" "$root$to" && mount -o "remount,bind,$how" "$root$to" ;;
    esac
done <"$root/mounts"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
exec chroot "$root" setpriv --reuid="$user" --regid="$user" --clear-groups --inh-caps=-all "$@"
"""


class BareRoot:
    """What is in `shown` is there under its own path, for reading alone."""

    def __init__(self, folder: Path, shown: Sequence[Path]) -> None:
        self.folder = folder
        self._mounts: list[str] = []
        for name in ("usr/bin", "proc", "dev", "etc", "tmp", str(HOME)[1:]):
            (folder / name).mkdir(parents=True)
        folder.chmod(0o755)
        (folder / "tmp").chmod(0o1777)
        os.chown(folder / str(HOME)[1:], USER, USER)
        (folder / "etc/passwd").write_text(f"ada:x:{USER}:{USER}::{HOME}:/bin/sh\n")
        shutil.copy("/etc/ld.so.cache", folder / "etc")
        self._take_programs()
        self._take_libraries()
        self._take_python()
        for path in shown:
            self._show(path)
        (folder / "mounts").write_text("".join(f"{line}\n" for line in self._mounts))

    def run(
        self, *words: str | Path, user: int = USER, within: float = 400.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a command there, as somebody."""
        space = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        environment = {"PATH": "/usr/bin", "HOME": str(HOME)}
        return subprocess.run(
            [*space, "sh", "-c", ENTER, "sh", str(self.folder), str(user), *map(str, words)],
            env=environment | {"PATH": "/usr/bin:/usr/sbin:/bin:/sbin"},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
        )

    def _take_programs(self) -> None:
        for name in PROGRAMS:
            program = shutil.which(name)
            assert program is not None, name
            shutil.copy(program, self.folder / "usr/bin")
        (self.folder / "bin").symlink_to("usr/bin")

    def _take_libraries(self) -> None:
        """Take the directories of shared libraries, under the names that the loader looks for."""
        for name in ("lib", "lib64"):
            path = Path("/") / name
            if path.is_symlink():
                (self.folder / name).symlink_to(path.readlink())
        triplet = sysconfig.get_config_var("MULTIARCH")
        for folder in (Path(f"/usr/lib/{triplet}"), Path("/usr/lib64")):
            self._show(folder)

    def _take_python(self) -> None:
        """Take the interpreter and its standard library; what was installed into it stays out."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        base = Path(sys.base_prefix)
        program = (base / "bin" / version).resolve()
        library = Path(sysconfig.get_path("stdlib", vars={"installed_base": str(base)}))
        self._show(library)
        for site in ("site-packages", "dist-packages"):
            if (library / site).is_dir():
                self._mounts.append(f"none {library / site} empty")
        target = self.folder / str(program)[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(program, target)
        self.python = program

    def _show(self, path: Path) -> None:
        path = path.resolve()
        target = self.folder / str(path)[1:]
        target.mkdir(parents=True, exist_ok=True)
        self._mounts.append(f"{path} {path} ro")
