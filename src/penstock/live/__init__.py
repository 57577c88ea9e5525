"""Unmodified jobs on a live machine: watched, and, where the site wants it, gated and forwarded."""
