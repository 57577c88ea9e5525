"""The decisions, one policy per file; `base` has the protocols they follow."""
