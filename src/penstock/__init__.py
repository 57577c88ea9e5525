"""Penstock: who may do I/O now, at what share, through which I/O nodes."""

__version__ = "0.1.0"
