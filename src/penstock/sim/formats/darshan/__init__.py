"""Darshan logs as profiles, and as jobs of a workload."""

from penstock.sim.formats.darshan.reader import Reader, logs_in, read

__all__ = ["Reader", "logs_in", "read"]
