"""I/O nodes answer in what their reader takes, and are reached again after a break."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from limits import HANG

from penstock.config import Config
from penstock.live.controller import io_nodes
from penstock.live.deployment.spec import Deployment
from penstock.live.ionode import process
from penstock.live.protocol import client, messages

pytestmark = pytest.mark.security


def test_an_answer_names_the_jobs_that_moved_most() -> None:
    """Many users' names are bounded together, by what the reader of the answer takes."""
    moved = {f"{2**31 + k}/{'j' * 56}.{k:06}": k for k in range(20_000)}
    named = process._most_active(moved)
    assert len(named) == process.MOST_JOBS
    assert min(named.values()) == 20_000 - process.MOST_JOBS
    assert len(msgspec.json.encode(named)) + 10_000 < client.MAX_LINE_BYTES


def test_the_connection_to_an_io_node_is_made_again(tmp_path: Path) -> None:
    """Else tuning would reach it no more until the I/O node restarts."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Break each connection at its first question; the third one lasts."""
        connections.append(writer)
        while await reader.readline():
            if len(connections) < 3:
                break
            writer.write(client.encode_line(messages.Done()))
        writer.close()

    connections: list[asyncio.StreamWriter] = []

    async def run() -> None:
        deployment = Deployment(state=str(tmp_path), roots=[], io_nodes=1, config=Config())
        nodes = io_nodes.IoNodes(deployment, lambda _: {}, up=lambda _: None, down=lambda _: None)
        one, path = nodes.nodes[0], nodes.state.control_socket(0)
        one.node = messages.Node(number=0, id=1, address=str(path))
        server = await asyncio.start_unix_server(serve, path)
        answers: list[object] = []

        def note(_: int, answer: object) -> None:
            answers.append(answer)

        await nodes.keep_link(one)
        async with asyncio.timeout(HANG):
            while not answers or not isinstance(answers[-1], messages.Done):
                question = {0: messages.Settings(depth=2)}
                await nodes.ask_each(
                    question, messages.Done, lambda _, answer: answers.append(answer)
                )
                await asyncio.sleep(0.01)
        assert len(connections) == 3
        assert {type(answer) for answer in answers[:-1]} <= {ConnectionError, ConnectionResetError}
        one.node = None  # it died: nobody connects to it any more
        connections[-1].close()
        server.close()
        await asyncio.sleep(2 * io_nodes.RELINK_DELAY)
        assert one.link is None
        await nodes.stop()

    asyncio.run(run())
