"""Hosts in network namespaces of their own, on one switch, whose cables can be pulled."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from limits import HANG

WITHIN = HANG


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=WITHIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One namespace: `command` makes a command run there."""

    name: str
    space: str
    switch: str
    address: str

    def command(self, *words: str) -> list[str]:
        """Return a command as it is run on this host."""
        return ["nsenter", f"--net=/run/netns/{self.space}", *words]

    def cut_off(self) -> None:
        """Pull its cable out of the switch."""
        _ip("-n", self.switch, "link", "set", self.name, "down")

    def bring_back(self) -> None:
        """Put its cable back."""
        _ip("-n", self.switch, "link", "set", self.name, "up")


@contextmanager
def hosts(names: Sequence[str]) -> Iterator[dict[str, Host]]:
    """Make hosts that reach each other and nobody else; nothing is left of them."""
    switch = f"pn{os.getpid()}"
    made = [
        Host(name=name, space=f"{switch}-{name}", switch=switch, address=f"10.77.0.{k + 1}")
        for k, name in enumerate(names)
    ]
    spaces = [switch, *(host.space for host in made)]
    try:
        for space in spaces:
            _ip("netns", "add", space)
            _ip("-n", space, "link", "set", "lo", "up")
        _ip("-n", switch, "link", "add", "switch", "type", "bridge")
        _ip("-n", switch, "link", "set", "switch", "up")
        for host in made:
            peer = ("peer", "name", "eth0", "netns", host.space)
            _ip("-n", switch, "link", "add", host.name, "type", "veth", *peer)
            _ip("-n", switch, "link", "set", host.name, "master", "switch", "up")
            _ip("-n", host.space, "address", "add", f"{host.address}/24", "dev", "eth0")
            _ip("-n", host.space, "link", "set", "eth0", "up")
        yield {host.name: host for host in made}
    finally:
        for space in spaces:
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "delete", space)
