"""Batch systems: Slurm."""
