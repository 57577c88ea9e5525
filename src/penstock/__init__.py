"""Penstock manages shared I/O: which job may transfer now, and with which share."""

from penstock.phase import phase

__all__ = ["__version__", "phase"]
__version__ = "0.1.0"
