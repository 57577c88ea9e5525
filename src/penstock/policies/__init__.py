"""The decisions, one policy a file; `base` has the protocols they follow."""
