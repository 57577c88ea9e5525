"""Who may do I/O now, and at what share: one policy a file."""
