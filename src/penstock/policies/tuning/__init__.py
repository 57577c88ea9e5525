"""Tuning policies: which value of a parameter suits an access pattern; one file per policy."""
