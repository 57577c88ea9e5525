"""The secret that clients of an emulated site show to its I/O nodes, which carry their data."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from penstock.live.protocol.shared_page import TOKEN_BYTES


def carry_token(path: Path) -> bytes:
    """Return the secret of a state directory, which keeps it: jobs outlive controllers."""
    with suppress(OSError):
        token = path.read_bytes()
        if len(token) == TOKEN_BYTES:
            return token
    token = secrets.token_bytes(TOKEN_BYTES)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(token)
    return token
