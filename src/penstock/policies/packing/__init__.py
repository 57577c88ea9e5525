"""Which jobs run together, behind which I/O node: one policy a file."""
