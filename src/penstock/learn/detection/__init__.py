"""Detect access patterns from the metrics of I/O nodes (thesis forwarding, Chapter 3)."""
