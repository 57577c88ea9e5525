"""Penstock: who may do I/O now, at what share, through which I/O nodes."""

from penstock.phase import phase

__all__ = ["__version__", "phase"]
__version__ = "0.1.0"
