"""A stand-in for an I/O node, for the launcher's tests: it answers control messages, no data."""

import argparse
import os
import signal
import socket
import threading

import msgspec

from penstock.live import wire

COUNTS = [field.name for field in msgspec.structs.fields(wire.Measured) if field.type is int]
TOLD = wire.Settings | wire.Weigh | wire.Measure | wire.Drain | wire.Stop


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("--socket", "--control"):
        parser.add_argument(name)
    for name in ("--number", "--id"):
        parser.add_argument(name, type=int)
    parser.add_argument("--with-parent", action="store_true")
    told = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    data = socket.socket(socket.AF_UNIX)
    data.bind(told.socket)
    data.listen()
    control = socket.socket(socket.AF_UNIX)
    control.bind(told.control)
    control.listen()
    print("serving", flush=True)
    while True:
        connection, _ = control.accept()
        threading.Thread(target=answer, args=(connection, told), daemon=True).start()


def answer(connection: socket.socket, told: argparse.Namespace) -> None:
    with connection, connection.makefile("rwb") as lines:
        for line in lines:
            message = msgspec.json.decode(line, type=TOLD)
            reply: wire.Message = wire.Done()
            if isinstance(message, wire.Measure):
                counts = dict.fromkeys(COUNTS, 0) | {"node": told.id, "number": told.number}
                reply = wire.Measured(scheduler="none", **counts)
            if isinstance(message, wire.Settings) and message.scheduler == "wrong":
                reply = wire.Failed(error="unknown scheduler 'wrong'")
            lines.write(msgspec.json.encode(reply) + b"\n")
            lines.flush()
            if isinstance(message, wire.Drain | wire.Stop):
                os._exit(0)


if __name__ == "__main__":
    main()
