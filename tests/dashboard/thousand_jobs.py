"""A thousand jobs of a controller, each a connection of its own with phases of its own.

They speak the protocol of `penstock run`'s agents and move nothing: what a dashboard shows of them
(phases, turns, shares, waits) is the controller's, what their phases moved is what they say. Run as
a program with the controller's socket, a number of jobs and a length in seconds; it prints "ready"
when all have accepted.
"""

import asyncio
import os
import random
import sys
import time

import msgspec

from penstock.live.protocol import messages
from penstock.live.protocol.client import encode_line

LONGEST = 120.0
_Messages = (
    messages.JobAccepted
    | messages.Turn
    | messages.Hold
    | messages.Heartbeat
    | messages.NodeMap
    | messages.Done
)


class Jobs:
    """A number of jobs that run until a time."""

    def __init__(self, path: str, count: int, until: float) -> None:
        self.path, self.count, self.until = path, count, until
        self.began = 0
        self.all_began = asyncio.Event()

    async def job(self, k: int, rng: random.Random) -> None:
        """Compute for one to ten seconds, ask for a turn, transfer for a part of a second."""
        reader, writer = await asyncio.open_unix_connection(self.path, limit=1 << 20)
        command = ["solve", f"--case={k}", "<img src=x onerror=window.pwned=1>"]
        pid = os.getpid()
        begin = messages.BeginJob(
            name=f"code-{k % 40}", pid=pid, command=command, user="root", protocol=messages.PROTOCOL
        )
        writer.write(encode_line(begin))
        accepted = msgspec.json.decode(await reader.readline(), type=_Messages)
        assert isinstance(accepted, messages.JobAccepted), accepted
        self.began += 1
        if self.began == self.count:
            self.all_began.set()
        turns: asyncio.Queue[int] = asyncio.Queue()
        listener = asyncio.create_task(self.listen(reader, turns))
        period, phase = rng.choice((1.0, 3.0, 10.0)), 0
        while time.monotonic() < self.until:
            await asyncio.sleep(period * rng.uniform(0.5, 1.0))
            phase += 1
            began_waiting = time.monotonic()
            writer.write(encode_line(messages.PhaseBegan(phase=phase)))
            try:
                async with asyncio.timeout(max(self.until - began_waiting, 0.1)):
                    while await turns.get() != phase:
                        pass
            except TimeoutError:
                break
            waited, seconds = time.monotonic() - began_waiting, period * rng.uniform(0.02, 0.05)
            await asyncio.sleep(seconds)
            moved = int(seconds * (64 << 20))
            ended = messages.PhaseEnded(phase=phase, bytes=moved, seconds=seconds, waited=waited)
            writer.write(encode_line(ended))
        listener.cancel()
        writer.close()

    @staticmethod
    async def listen(reader: asyncio.StreamReader, turns: "asyncio.Queue[int]") -> None:
        while text := await reader.readline():
            if b'"Turn"' in text:
                turns.put_nowait(msgspec.json.decode(text, type=messages.Turn).phase)

    async def run(self) -> None:
        """Let all begin, say so, and let them go on until the time comes."""
        async with asyncio.timeout(LONGEST), asyncio.TaskGroup() as group:
            for k in range(self.count):
                group.create_task(self.job(k, random.Random(k)))
            await self.all_began.wait()
            print("ready", flush=True)


if __name__ == "__main__":
    path, count, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    asyncio.run(Jobs(path, count, time.monotonic() + min(seconds, LONGEST - 20.0)).run())
