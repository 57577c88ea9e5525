"""Access patterns, told from what I/O nodes see (thesis forwarding, Chapter 3)."""
