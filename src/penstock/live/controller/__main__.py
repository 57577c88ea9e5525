"""The controller as a process of its own, in the background.

`python -m penstock.live.controller` reads a Deployment from standard input, and writes Done or
Failed to standard output once all I/O nodes serve, or cannot. Its arguments are the descriptor
of the deployment's lock, which it inherits and holds, and the process that started it.
"""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

import msgspec

from penstock.errors import InputError
from penstock.live.controller.controller import Controller
from penstock.live.controller.io_nodes import StartError
from penstock.live.controller.listeners import RemoteListener
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol import client, messages
from penstock.live.protocol.process import end_with_parent, raise_descriptor_limit
from penstock.live.protocol.state_directory import StateDirectory, write_holder
from penstock.live.store import StoreError
from penstock.progress import log_to_stderr

log = logging.getLogger("penstock.controller")


async def _run(deployment: Deployment, ready: int) -> None:
    try:
        port, hosts = _http(deployment), RemoteListener(deployment)
        controller = Controller(deployment)
        server = await controller.start()
    except (StartError, StoreError, InputError) as error:
        log.error("%s", error)
        wrong = isinstance(error, InputError)
        _report(ready, messages.Failure(error=str(error), wrong_input=wrong))
        return
    _report(ready, messages.Done())
    admitting = hosts.serving(controller.accept, controller.refusals)
    async with server, port(controller), admitting:
        await controller.serve(server)


def _http(deployment: Deployment) -> Callable[[Controller], AbstractAsyncContextManager[object]]:
    """Return what serves a controller's HTTP API, if it has one; its port is opened at once."""
    if deployment.http is None:
        return lambda _: nullcontext()
    # A third of all import time, and most controllers have no API.
    from penstock.live.http.api import HttpPort  # noqa: PLC0415
    from penstock.live.http.controller_service import ControllerService  # noqa: PLC0415

    port = HttpPort(deployment)
    return lambda controller: port.serving(ControllerService(controller))


def _report(ready: int, message: messages.Message) -> None:
    os.write(ready, client.encode_line(message))
    os.close(ready)


def main() -> None:
    """Run the controller of the deployment on standard input."""
    deployment = msgspec.json.decode(sys.stdin.buffer.read(), type=Deployment)
    if deployment.attached:
        end_with_parent(signal.SIGTERM, int(sys.argv[2]))
    elif os.fork():
        os._exit(0)
    write_holder(int(sys.argv[1]), os.getpid())
    ready = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.chdir("/")
    os.umask(0o077)
    log_to_stderr()
    raise_descriptor_limit()
    state = StateDirectory(Path(deployment.state))
    if left := state.clean_up():
        log.warning("ended %d I/O nodes that an earlier controller left behind", left)
    # A controller makes few reference cycles; imported and loaded objects stay.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    try:
        asyncio.run(_run(deployment, ready))
    finally:
        state.clean_up()


if __name__ == "__main__":
    main()
