"""A limit of what a generator may draw, checked before it takes memory."""

from penstock.errors import InputError


class TooLargeError(InputError):
    """The options describe a larger workload than the limit."""


def check_size(count: float, most: int | None) -> None:
    """Raise TooLargeError where there would be more jobs or iterations than `most`."""
    if most is not None and count > most:
        raise TooLargeError(f"{count:,.0f} jobs or iterations, where {most:,} are the limit")
