"""A measurement over hosts: launchers do what it says, and nothing that others say."""

import socket
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from limits import HANG

from penstock.live.measure import host_launcher, host_messages
from penstock.live.measure.host_launcher import HostLauncher
from penstock.live.measure.host_messages import (
    CheckRoot,
    Done,
    Hello,
    Introduction,
    SealedConnection,
)
from penstock.live.protocol import messages
from penstock.live.protocol.site_key import SiteKey, nonce

pytestmark = pytest.mark.security

KEY = SiteKey(b"k" * 32)


class Measurement:
    """The measurement's end of a connection to a launcher, in this process."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            introduction = Introduction(
                host="127.0.0.1", port=listener.getsockname()[1], key=KEY.secret.hex()
            )
            self._thread = threading.Thread(target=self._launch, args=(introduction, folder))
            self._thread.start()
            self.connection = Connection(listener.accept()[0].detach())
        challenge = nonce()
        host_messages.send(self.connection, messages.Challenge(nonce=challenge))
        proof = host_messages.receive(self.connection, messages.Proof)
        own = KEY.proof("controller", challenge, proof.nonce)
        host_messages.send(self.connection, messages.Proof(nonce=challenge, proof=own))
        seals = KEY.seals("controller", challenge, proof.nonce)
        self.sealed = SealedConnection(self.connection, seals)
        self.sealed.decode(self.connection.recv_bytes(), Hello)

    @staticmethod
    def _launch(introduction: Introduction, folder: Path) -> None:
        with (
            host_launcher.connect(introduction) as connection,
            HostLauncher(connection, KEY, folder) as host,
        ):
            host.serve()

    def close(self) -> None:
        self.connection.close()
        self._thread.join(HANG)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("content")
    return tmp_path / "file"


@pytest.fixture
def measurement(tmp_path: Path) -> Iterator[Measurement]:
    made = Measurement(tmp_path)
    yield made
    made.close()


def test_a_launcher_does_what_the_measurement_says(measurement: Measurement, file: Path) -> None:
    for _ in range(2):
        measurement.sealed.send(CheckRoot(file=str(file), content="content"))
        assert measurement.sealed.decode(measurement.connection.recv_bytes(), Done) == Done()


@pytest.mark.parametrize("kind", ["unsealed", "changed", "repeated"])
def test_a_launcher_does_nothing_that_others_say(
    measurement: Measurement, file: Path, kind: str
) -> None:
    """Else who can change packets would start I/O nodes on any directory of the user's."""
    said = CheckRoot(file=str(file), content="content")
    sealed = measurement.sealed.seals.sent.seal(host_messages.encode(said))
    sent = {
        "unsealed": host_messages.encode(said),
        "changed": sealed.replace(b"content", b"CONTENT"),
        "repeated": sealed,
    }[kind]
    if kind == "repeated":
        measurement.connection.send_bytes(sealed)
        assert b'"Done"' in measurement.connection.recv_bytes()
    measurement.connection.send_bytes(sent)
    with pytest.raises((EOFError, ConnectionError)):
        measurement.connection.recv_bytes()
