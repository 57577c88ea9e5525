"""Readers of samples, one file per source."""
