"""The batch system, Slurm: its hooks, its licences and its queue."""
