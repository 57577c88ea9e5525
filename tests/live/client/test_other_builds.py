"""Programs built in other ways: with a sanitizer, for musl, for 32 bits, and under valgrind."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from live.client.set_ups import SET_UPS, Compiled, SetUp, set_up

WRITER = """
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  char* data = malloc(65536);
  memset(data, 'w', 65536);
  int fd = open("written", O_RDWR | O_CREAT | O_TRUNC, 0644);
  for (int k = 0; k < 64; ++k) if (write(fd, data, 65536) != 65536) return 1;
  if (pread(fd, data, 65536, 65536) != 65536 || data[65535] != 'w') return 2;
  pid_t pid = fork();
  if (pid == 0) _exit(pwrite(fd, "child", 5, 0) != 5);
  int status;
  if (waitpid(pid, &status, 0) != pid || status != 0) return 3;
  FILE* stream = fopen("printed", "w");
  for (int k = 0; k < 1000; ++k) fprintf(stream, "line %d\\n", k);
  if (fclose(stream) != 0 || fsync(fd) != 0 || close(fd) != 0) return 4;
  printf("done\\n");
  free(data);
  return 0;
}
"""
WRITTEN = b"child" + b"w" * ((4 << 20) - 5)
PRINTED = "".join(f"line {k}\n" for k in range(1000))


@pytest.fixture(scope="module", params=SET_UPS)
def job(request: pytest.FixtureRequest) -> Iterator[SetUp]:
    with set_up(request.param) as job:
        yield job


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("builds") / "writer.c"
    path.write_text(WRITER)
    return path


def build(source: Path, name: str, *compiler: str) -> str:
    target = source.with_name(name)
    command = [*compiler, "-o", str(target), str(source)]
    if not target.exists():
        tried = subprocess.run(command, capture_output=True, text=True, check=False)
        if tried.returncode != 0:
            pytest.skip(f"{' '.join(compiler)} does not build here: {tried.stderr[:200]}")
    return str(target)


def check_managed(job: SetUp, *command: str) -> None:
    """The program does what it does plainly, says no more, and is counted."""
    before = job.pages.total("write_bytes")
    plain = job.run(*command, managed=False)
    managed = job.run(*command)
    assert (managed.stdout, managed.stderr) == (plain.stdout, plain.stderr)
    for root in (job.root, job.plain):
        assert (root / "written").read_bytes() == WRITTEN
        assert (root / "printed").read_text() == PRINTED
    assert job.pages.total("write_bytes") - before >= len(WRITTEN)


def test_address_sanitizer_of_gcc(job: SetUp, source: Path) -> None:
    check_managed(job, build(source, "asan", "gcc", "-fsanitize=address", "-g"))


def test_address_sanitizer_keeps_what_its_user_chose(job: SetUp, source: Path) -> None:
    leaking = source.with_name("leak.c")
    leaking.write_text("#include <stdlib.h>\nint main(void) { return malloc(9) == NULL; }\n")
    program = build(leaking, "leak", "gcc", "-fsanitize=address", "-O0")
    own = job.agent.environment()["ASAN_OPTIONS"]
    assert job.run(program, ASAN_OPTIONS=f"exitcode=99:{own}", check=False).returncode == 99


def test_musl(job: SetUp, source: Path) -> None:
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl-gcc is not installed")
    check_managed(job, build(source, "musl", "musl-gcc"))


def test_valgrind_has_nothing_to_say(job: SetUp, source: Path) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    program = build(source, "valgrind", "gcc", "-g")
    check_managed(job, "valgrind", "-q", "--error-exitcode=9", "--leak-check=no", program)


def test_32_bit_programs_run_unmanaged(job: SetUp, source: Path) -> None:
    """The linker's own line about another class of library cannot be avoided: documented."""
    program = build(source, "narrow", "gcc", "-m32")
    before = job.pages.total("write_bytes")
    ended = job.run(program)
    assert ended.stdout == "done\n"
    assert all("wrong ELF class" in line for line in ended.stderr.splitlines())
    assert (job.root / "written").read_bytes() == WRITTEN
    assert job.pages.total("write_bytes") == before


def test_what_the_kernel_refuses_it_refuses(job: SetUp, compiled: Compiled) -> None:
    """EFAULT and EINVAL for vectors and ranges that are wrong, instead of a crash."""
    program = compiled("vectors.c", "-w")
    plain = job.run(program, managed=False)
    managed = job.run(program)
    assert managed.stdout.splitlines() == plain.stdout.splitlines()
    assert (job.root / "vectors.bin").read_bytes() == (job.plain / "vectors.bin").read_bytes()
