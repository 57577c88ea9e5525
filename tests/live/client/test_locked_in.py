"""Programs that restrict themselves (seccomp): a system call of the library's would kill them."""

import os
import subprocess

import pytest
from limits import HANG
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


@pytest.mark.parametrize("name", SET_UPS)
def test_threads_in_calls_are_restricted(name: str, compiled: Compiled) -> None:
    program = compiled("locked_threads.c", "-w", "-pthread")
    with set_up(name) as job:
        for microseconds in ("0", "1000", "20000", "50000"):
            job.run(program, "24", microseconds)


@pytest.mark.parametrize("name", SET_UPS)
def test_written_data_is_synced_before_a_process_restricts_itself(
    name: str, compiled: Compiled
) -> None:
    program = compiled("no_new_privs.c")
    with set_up(name) as job:
        printed = job.run(program).stdout.splitlines()
        assert printed == ["after no_new_privs: 0"] * 2 + ["after seccomp: 0"] * 2
        writes = job.pages.total("writes")
        assert writes == 2


def test_data_that_is_lost_is_one_error(compiled: Compiled) -> None:
    program = compiled("no_new_privs.c")
    with (
        set_up("carried over TCP") as job,
        subprocess.Popen(
            [program, "and lose"],
            cwd=job.root,
            env=os.environ | job.agent.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        while process.stdout.readline() not in ("ready\n", ""):
            pass
        job.nodes[0].process.kill()
        job.nodes[0].process.wait(HANG)
        printed = process.communicate("\n", timeout=HANG)[0].splitlines()
        assert printed == ["after seccomp: Input/output error", "after seccomp: 0"]
