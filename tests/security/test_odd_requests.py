"""What fuzzers found in HTTP: bytes that are no request end their connection, and fill no log."""

import logging
from contextlib import suppress
from pathlib import Path

import pytest
from live.http.api_site import WAIT, FakeService, served, token_file
from security.test_http_floods import connected

from penstock.live.http.api import Api
from penstock.live.http.dispatch import RequestLimits
from penstock.live.protocol.tokens import Tokens

pytestmark = pytest.mark.security


@pytest.mark.parametrize("path", ["/v1/jobs", "/x"])
def test_bytes_after_the_last_request_are_no_internal_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    """They are refused while that request is answered, for some of these connections."""
    text = f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode()
    tokens, waits = Tokens.read(token_file(tmp_path)), RequestLimits(pause_seconds=0.0)
    api = Api(FakeService(), tokens=tokens, limits=waits)
    with caplog.at_level(logging.ERROR), served(api) as where:
        for _ in range(300):
            # More than is received at once.
            with connected(where, text + b"x" * 300_000) as connection:
                connection.settimeout(WAIT)
                with suppress(ConnectionError):
                    assert connection.recv(1 << 16)[:10] in {b"HTTP/1.1 2", b"HTTP/1.1 4"}
    assert [record for record in caplog.records if record.exc_info] == []
