"""The file systems of a deployment, from the configuration and the command line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.config import Config, Setting, load
from penstock.errors import InputError
from penstock.live.deployment.file_systems import file_systems_of, mixed_devices, roots_of
from penstock.live.deployment.spec import Deployment
from penstock.model import FileSystem

Folder = Callable[[str], str]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    def folder(name: str) -> str:
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        return str(tmp_path / name)

    return folder


def configured(*settings: str) -> Config:
    return load(None, [Setting.parse(each) for each in settings], environment={}).config


def names(file_systems: list[FileSystem]) -> dict[str, list[str]]:
    return {each.name: [Path(root).name for root in each.roots] for each in file_systems}


def test_plain_roots_are_one_file_system(folder: Folder) -> None:
    file_systems = file_systems_of(Config(), [folder("a"), folder("b"), folder("a")])
    assert names(file_systems) == {"default": ["a", "b"]}


def test_names_make_several(folder: Folder) -> None:
    options = [f"home={folder('a')}", f"scratch={folder('b')}", f"home={folder('c')}"]
    file_systems = file_systems_of(Config(), options)
    assert names(file_systems) == {"home": ["a", "c"], "scratch": ["b"]}
    deployment = Deployment(
        state="s", roots=roots_of(file_systems), file_systems=file_systems, io_nodes=0
    )
    assert [Path(root).name for root in deployment.roots] == ["a", "c", "b"]
    assert deployment.file_system_of_roots() == [0, 0, 1]


def test_a_configured_one_has_a_bandwidth_and_further_roots(folder: Folder) -> None:
    config = configured(
        f"site.file-systems.scratch={{roots=['{folder('a')}'], bandwidth='2 GiB/s'}}"
    )
    file_systems = file_systems_of(config, [f"scratch={folder('b')}", folder("c")])
    assert names(file_systems) == {"scratch": ["a", "b"], "default": ["c"]}
    assert [each.bandwidth for each in file_systems] == [2 * 2**30, None]


def test_a_file_has_a_table_for_each(tmp_path: Path, folder: Folder) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(
        f'[site.file-systems.home]\nroots = ["{folder("a")}"]\n'
        f'[site.file-systems.scratch]\nroots = ["{folder("b")}"]\nbandwidth = "1 GiB/s"\n'
    )
    config = load(file, environment={}).config
    assert names(file_systems_of(config, [])) == {"home": ["a"], "scratch": ["b"]}


def test_roots_may_be_nested_as_mounts_are(folder: Folder) -> None:
    options = [f"home={folder('a')}", f"scratch={folder('a/b')}"]
    assert names(file_systems_of(Config(), options)) == {"home": ["a"], "scratch": ["b"]}


def test_a_directory_whose_name_has_an_equals_sign(folder: Folder) -> None:
    folder("x=y")
    assert names(file_systems_of(Config(), [folder("x=y")])) == {"default": ["x=y"]}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ([], r"give at least one with --root DIR, or in \[site.file-systems\]"),
        (["home={a}", "scratch={a}"], "{a} is a directory of file system 'home' too"),
        (["{a}", "scratch={a}"], "{a} is a directory of file system 'default' too"),
        (["home=/nowhere/at/all"], "/nowhere/at/all: there is no such directory"),
        (["home=/"], "the whole system cannot be managed"),
        (9 * ["home={a}"], "9 managed directories; give at most 8"),
    ],
)
def test_what_cannot_be_is_refused(folder: Folder, options: list[str], error: str) -> None:
    a = folder("a")
    with pytest.raises(InputError, match=error.replace("{a}", a)):
        file_systems_of(Config(), [option.replace("{a}", a) for option in options])


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        ("scratch={roots=[]}", "site.file-systems.scratch has no roots"),
        ("scratch={roots=['/s'], bandwidth='0 GiB/s'}", "scratch.bandwidth is 0"),
        ("scratch={roots=['/s'], bandwidth='fast'}", "scratch.bandwidth"),
        ("scratch={roots=['/s'], bandwith='1 GiB/s'}", "give a table: roots"),
        ("scratch={bandwidth='1 GiB/s'}", "give a table: roots"),
        ("scratch=3", "give a table: roots"),
        ("'a name'={roots=['/s']}", "is no name of a file system"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(setting: str, error: str) -> None:
    with pytest.raises(InputError, match=error):
        configured(f"site.file-systems.{setting}")


def test_a_configured_root_that_is_missing_names_its_key() -> None:
    config = configured("site.file-systems.scratch={roots=['/nowhere/at/all']}")
    with pytest.raises(InputError, match=r"^site\.file-systems\.scratch: /nowhere/at/all"):
        file_systems_of(config, [])


def test_plain_roots_on_different_devices_are_told_of(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, memory = folder("a"), "/dev/shm"
    if Path(a).stat().st_dev == Path(memory).stat().st_dev:
        a = "/"
    together = [FileSystem(name="default", roots=(a, memory))]
    assert "are on different devices and count as one file system" in str(mixed_devices(together))
    apart = [FileSystem(name="x", roots=(a,)), FileSystem(name="y", roots=(memory,))]
    assert mixed_devices(apart) is None
