"""The real Prometheus, started with the example of deploy/prometheus."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

EXAMPLE = Path(__file__).parents[3] / "deploy" / "prometheus"
WAIT, POLL = 30.0, 0.05


def configured(folder: Path, target: str, token: str) -> Path:
    """Put the example where it is used, with a controller as its target, and in less time."""
    (folder / "penstock.token").write_text(token)
    shutil.copy(EXAMPLE / "penstock.rules.yml", folder)
    text = (EXAMPLE / "prometheus.yml").read_text()
    assert text.count("127.0.0.1:9617") == 1
    text = text.replace("127.0.0.1:9617", target).replace("15s", "200ms").replace("10s", "200ms")
    (folder / "prometheus.yml").write_text(text)
    return folder / "prometheus.yml"


class Prometheus:
    """A server that runs."""

    def __init__(self, port: int) -> None:
        self._port = port

    def get(self, path: str, **parameters: Any) -> Any:
        """Return the data of an answer; AssertionError: what is wrong with the question."""
        answer = httpx.get(
            f"http://127.0.0.1:{self._port}/api/v1/{path}",
            params=parameters,
            timeout=WAIT,
            trust_env=False,
        ).json()
        assert answer["status"] == "success", answer.get("error")
        return answer["data"]

    def ask(self, query: str) -> list[dict[str, Any]]:
        """Return the series that an expression has now."""
        answer: list[dict[str, Any]] = self.get("query", query=query)["result"]
        return answer

    def awaited(self, query: str, until: str | None = None) -> str | None:
        """Return a query's value once there is one, or it is this; nobody tells when."""
        value, deadline = None, time.monotonic() + WAIT
        while (value is None if until is None else value != until) and time.monotonic() < deadline:
            try:
                result = self.ask(query)
            except (httpx.TransportError, ValueError):
                result = []
            value = result[0]["value"][1] if result else None
            if value is None or value != until:
                time.sleep(POLL)
        return value


@contextmanager
def scraping(folder: Path, where: str, token: str) -> Iterator[Prometheus]:
    """Start a Prometheus that scrapes a controller at a URL."""
    config = configured(folder, where.removeprefix("http://"), token)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/db"]
    with (folder / "prometheus.log").open("ab") as log:
        process = subprocess.Popen(
            [*command, f"--web.listen-address=127.0.0.1:{port}"], stderr=log, stdout=log
        )
    try:
        yield Prometheus(port)
    finally:
        process.terminate()
        process.wait(WAIT)
