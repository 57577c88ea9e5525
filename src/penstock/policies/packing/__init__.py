"""Packing policies: which jobs run together, behind which I/O node; one file per policy."""
