"""Small programs that once saw something else with Penstock than without: the same in each set-up.

What differs where data is carried is in the documentation of the client library, under limits.
"""

import os
from collections.abc import Iterator

import pytest
from live.client.set_ups import SET_UPS, Compiled, SetUp, set_up

SAME = (
    "raw close",
    "raw close of all",
    "vfork",
    "cancelled",
    "closed text",
    "wrong range",
    "at exit",
    "after exit",
    "exec",
)
SAME_ON_ONE_HOST = {
    "busy text": "refused:",
    "lease": "lease: -1",
    "position": "beyond the end:",
}
"""With what is said where data is carried: the I/O node has the file open too."""
CARRIED = "carried over TCP"
MOST_TAKEN = 4
"""Descriptors that the library may take away from a program."""


@pytest.fixture(scope="module", params=SET_UPS)
def name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def job(name: str) -> Iterator[SetUp]:
    with set_up(name) as job:
        yield job


def seen(job: SetUp, probe: str, program: str) -> tuple[str, str]:
    """Return what the probe says plainly and managed; both end well."""
    plain = job.run(program, probe, managed=False, check=False)
    managed = job.run(program, probe, check=False)
    assert (plain.returncode, managed.returncode) == (0, 0), plain.stderr + managed.stderr
    return plain.stdout, managed.stdout


@pytest.mark.parametrize("probe", SAME)
def test_same(job: SetUp, compiled: Compiled, probe: str) -> None:
    plain, managed = seen(job, probe, compiled("probes.c", "-w"))
    assert managed == plain


def test_lists_of_requests_are_counted_for_what_they_move(job: SetUp, compiled: Compiled) -> None:
    before = job.pages.total("left_bytes")
    plain, managed = seen(job, "wrong list", compiled("probes.c", "-w"))
    assert managed == plain
    assert job.pages.total("left_bytes") == before


@pytest.mark.parametrize("probe", ["set user", "set file user"])
def test_set_id_bits_go_by_the_rights_of_the_moment(
    job: SetUp, compiled: Compiled, probe: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become another user")
    plain, managed = seen(job, probe, compiled("probes.c", "-w"))
    assert managed == plain == "mode: 777\n"


@pytest.mark.parametrize("probe", SAME_ON_ONE_HOST)
def test_same_on_one_host(job: SetUp, name: str, compiled: Compiled, probe: str) -> None:
    plain, managed = seen(job, probe, compiled("probes.c", "-w"))
    if name == CARRIED:
        assert managed.startswith((plain, SAME_ON_ONE_HOST[probe]))
    else:
        assert managed == plain


def test_a_program_may_use_up_its_descriptors(job: SetUp, compiled: Compiled) -> None:
    plain, managed = seen(job, "descriptors", compiled("probes.c", "-w"))
    opened = [int(text.split()[1]) for text in (plain, managed)]
    assert 0 <= opened[0] - opened[1] <= MOST_TAKEN
    assert managed.splitlines()[1:] == plain.splitlines()[1:]
