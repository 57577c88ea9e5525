"""Programs that restrict themselves (seccomp): a system call of the library's would kill them."""

import pytest
from live.client.set_ups import SET_UPS, Compiled, set_up

WAYS = ("prctl", "raw prctl", "raw seccomp", "strict", "raw strict")
"""How a program locks itself in: through the C library's functions, or by `syscall`."""


@pytest.mark.parametrize("name", SET_UPS)
def test_every_call_makes_the_system_calls_of_the_plain_one(name: str, compiled: Compiled) -> None:
    program = compiled("locked_in.c", "-w")
    with set_up(name) as job:
        for way in WAYS:
            plain = job.run(program, way, managed=False).stdout
            assert plain.splitlines()
            assert all(line.endswith(": returned 0") for line in plain.splitlines())
            assert job.run(program, way).stdout == plain
        assert job.pages.total("writes") > 0


@pytest.mark.parametrize("name", SET_UPS)
def test_a_restricted_process_starts_another_program(name: str, compiled: Compiled) -> None:
    program = compiled("restricted_exec.c")
    with set_up(name) as job:
        for folder in (job.root, job.plain):
            (folder / "text").write_text("data\n")
        for managed in (False, True):
            assert job.run(program, "/bin/cat", "text", managed=managed).stdout == "data\n"
