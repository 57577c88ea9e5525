"""Where the controller listens: its HTTP API on this host alone, unless there are tokens."""

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
    """Where to listen; port 0 is a free one."""

    host: str
    port: int
    flag: str = "--http"  # what said so

    @classmethod
    def parse(cls, text: str, flag: str = "--http") -> "Address":
        """Return what a flag says: HOST:PORT, [IPv6]:PORT, or a port on localhost."""
        found = _ADDRESS.fullmatch(text.strip())
        if found is None or int(found["port"]) > 65535:
            raise InputError(f"{flag} {text!r} is no address; give HOST:PORT, or PORT on localhost")
        host = (found["host"] or "127.0.0.1").strip("[]")
        return cls(host=host, port=int(found["port"]), flag=flag)

    @property
    def is_local(self) -> bool:
        """Whether only this host can come here; what has to be looked up is not trusted to."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def check(self, *, tokens: bool) -> None:
        """Raise InputError where others can come, and there are no tokens."""
        if not tokens and not self.is_local:
            raise InputError(
                f"--http {self.host}:{self.port} can be reached from other hosts; "
                "give --token-file, or listen on localhost"
            )

    def bound(self) -> socket.socket:
        """Return a socket that takes connections there."""
        try:
            host = "127.0.0.1" if self.host == "localhost" else self.host
            family, kind, protocol, _, where = socket.getaddrinfo(
                host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            listener = socket.socket(family, kind, protocol)
        except (OSError, UnicodeError) as error:
            raise InputError(f"{self.flag} {self.host}:{self.port}: {reason(error)}") from error
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(where)
            listener.listen(BACKLOG)
        except OSError as error:
            listener.close()
            told = f"{self.flag} {self.host}:{self.port}: {reason(error)}"
            raise InputError(f"{told}; give another address or port") from error
        return listener


def url(listener: socket.socket) -> str:
    """Return where a socket can be reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
