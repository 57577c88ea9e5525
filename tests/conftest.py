"""Settings for all tests."""

import gc
import os
import signal
from collections.abc import Iterator

import failures
import pytest
import schedule
from hypothesis import settings

# Workers use all cores already: threads of the algebra's own would only wait for each other.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# A shell's background jobs are born deaf to interrupts, nohup's to hang-ups, and so would be what
# tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# A failure must be the same on every machine, so examples come from a fixed seed; a soak draws new
# ones each time. How long an example takes is not judged: a busy machine would decide.
settings.register_profile("default", derandomize=True, deadline=None)
settings.register_profile("soak", print_blob=True, deadline=None)
settings.load_profile("soak" if "PENSTOCK_SOAK" in os.environ else "default")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(failures.Plugin())
    config.pluginmanager.register(schedule.Plugin())


def pytest_collection_finish() -> None:
    # What was imported stays: `gc.collect` looks only at what tests make, and is quick.
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """Daemons that serve in a test's own process leave theirs behind."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


@pytest.fixture(scope="module", autouse=True)
def _leaks_are_reported_here() -> Iterator[None]:
    """Find sockets and transports that a file of tests left open before another file begins."""
    yield
    gc.collect()
