"""The stripes of files over a job's I/O nodes: which sizes are accepted."""

from penstock.errors import InputError
from penstock.units import show_volume

STRIPE_UNIT = 64 << 10
"""Bytes: the smallest stripe, and what others are multiples of, as on Lustre."""


def check_stripe(stripe: int, subject: str) -> int:
    """Return the bytes of a stripe, 0 for none; InputError: every call would ask many I/O nodes."""
    if stripe % STRIPE_UNIT:
        unit = show_volume(STRIPE_UNIT)
        raise InputError(f"{subject}: a stripe has at least {unit}, and is a multiple of {unit}")
    return stripe
