"""How native code is built: what makes a fault in it harder to use."""

import platform
import re
import subprocess
from pathlib import Path

import pytest

from penstock.live.ionode import _ionode

pytestmark = pytest.mark.security

PACKAGE = Path(_ionode.__file__).parents[2]
LIBRARIES = {path.name.partition(".")[0]: path for path in sorted(PACKAGE.rglob("*.so"))}
PRELOADED = {name for name in LIBRARIES if name.startswith("lib")}
ENDBR64 = b"\xf3\x0f\x1e\xfa"


def read(name: str, *what: str) -> str:
    command = ["readelf", "--wide", *what, str(LIBRARIES[name])]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def needed(name: str) -> set[str]:
    """Return the functions that a library takes from others."""
    symbols = read(name, "--dyn-syms")
    return set(re.findall(r" UND (\w+)", symbols))


def test_all_libraries_are_found() -> None:
    assert {"_ionode", "_schedulers", "_engine", "_knapsack"} <= set(LIBRARIES)
    assert {"libpenstock_client", "libpenstock_emulator", "libpenstock_emulator_link"} == PRELOADED


@pytest.mark.parametrize("name", LIBRARIES)
def test_nothing_is_bound_late_or_executable_and_writable(name: str) -> None:
    dynamic, segments = read(name, "--dynamic"), read(name, "--program-headers")
    assert re.search(r"\(FLAGS\).*BIND_NOW", dynamic)
    assert "GNU_RELRO" in segments
    assert re.search(r"GNU_STACK.* RW +0x", segments)
    assert " RWE " not in segments
    assert "TEXTREL" not in dynamic


@pytest.mark.parametrize("name", LIBRARIES)
def test_stacks_are_protected(name: str) -> None:
    assert "__stack_chk_fail" in needed(name)


@pytest.mark.parametrize("name", LIBRARIES)
def test_calls_of_the_c_library_are_checked_where_it_may_be_asked_to(name: str) -> None:
    checked = {symbol for symbol in needed(name) if re.fullmatch(r"__\w+_chk", symbol)}
    if name in PRELOADED:  # musl has no such functions
        assert not checked
    else:
        assert checked


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 has endbr64")
def test_indirect_jumps_land_where_functions_begin(name: str) -> None:
    assert LIBRARIES[name].read_bytes().count(ENDBR64) > 10
