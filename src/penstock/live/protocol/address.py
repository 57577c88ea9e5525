"""Addresses that a process listens on, as flags give them: HOST:PORT, or a port on localhost."""

import ipaddress
import re
import socket
from dataclasses import dataclass

from penstock.errors import InputError
from penstock.files import reason

BACKLOG = 128
_ADDRESS = re.compile(r"(?:(?P<host>[^:\[\]]*|\[[0-9A-Fa-f:.]+\]):)?(?P<port>[0-9]{1,5})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """An address to listen on; port 0 is any free port."""

    host: str
    port: int
    flag: str = "--http"  # the flag that gave it, for messages

    @classmethod
    def parse(cls, text: str, flag: str = "--http") -> "Address":
        """Parse the value of a flag: HOST:PORT, [IPv6]:PORT, or a port on localhost."""
        match = _ADDRESS.fullmatch(text.strip())
        if match is None or int(match["port"]) > 65535:
            raise InputError(
                f"{flag} {text!r} is not an address; give HOST:PORT, or PORT on localhost"
            )
        host = (match["host"] or "127.0.0.1").strip("[]")
        return cls(host=host, port=int(match["port"]), flag=flag)

    @property
    def is_local(self) -> bool:
        """Whether only this host can connect; a name that needs a lookup is not trusted."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def check(self, *, tokens: bool) -> None:
        """Raise InputError if other hosts can connect and there are no tokens."""
        if not tokens and not self.is_local:
            raise InputError(
                f"--http {self.host}:{self.port} can be reached from other hosts; "
                "give --token-file, or listen on localhost"
            )

    def listen(self) -> socket.socket:
        """Return a socket that listens on the address."""
        try:
            host = "127.0.0.1" if self.host == "localhost" else self.host
            family, kind, protocol, _, target = socket.getaddrinfo(
                host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            listener = socket.socket(family, kind, protocol)
        except (OSError, UnicodeError) as error:
            raise InputError(f"{self.flag} {self.host}:{self.port}: {reason(error)}") from error
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(target)
            listener.listen(BACKLOG)
        except OSError as error:
            listener.close()
            raise InputError(
                f"{self.flag} {self.host}:{self.port}: {reason(error)}; "
                "give another address or port"
            ) from error
        return listener


def url(listener: socket.socket) -> str:
    """Return the URL at which a listening socket can be reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
