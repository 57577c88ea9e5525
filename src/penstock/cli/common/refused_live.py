"""Which allocation and placement policies a live site refuses: they can only be simulated."""

from collections.abc import Mapping

from penstock.errors import InputError
from penstock.live.controller import arbitration
from penstock.records import Header


def refused_live(headers: Mapping[str, Header]) -> dict[str, str]:
    """Return the names whose policies `penstock up` refuses, each with its reason."""
    refused = {}
    for name, header in headers.items():
        if header.allocation is not None:
            try:
                arbitration.check(header)
            except InputError as error:
                refused[name] = str(error)
    return refused
