"""Run a command with limits: `python -m penstock.live.http.sandbox SECONDS BYTES PARENT COMMAND`.

The command runs at the lowest priority, on one processor, with limited processor time and memory,
and ends with the process that started it. The limits are set here and not between fork and exec,
where a process with several threads can do next to nothing.
"""

import os
import resource
import signal
import sys

from penstock.live.protocol.process import end_with_parent

ADDRESS_SPACE = 3
"""Address space per byte of memory: libraries reserve more than they use."""


def confine(seconds: int, memory: int) -> None:
    """Limit this process."""
    os.nice(19)
    # Programs that would use all processors use one: jobs and their turns have the others.
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {processors[os.getpid() % len(processors)]})
    limits = {
        resource.RLIMIT_CPU: (seconds, seconds + 1),
        resource.RLIMIT_DATA: (memory, memory),
        resource.RLIMIT_AS: (ADDRESS_SPACE * memory, ADDRESS_SPACE * memory),
        resource.RLIMIT_CORE: (0, 0),
    }
    for limit, (soft, hard) in limits.items():
        most = resource.getrlimit(limit)[1]
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)  # noqa: PLW2901 - already lower
        resource.setrlimit(limit, (soft, hard))


def main() -> None:
    """Limit this process and become the command."""
    seconds, memory, parent, *command = sys.argv[1:]
    end_with_parent(signal.SIGKILL, int(parent))
    confine(int(seconds), int(memory))
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
