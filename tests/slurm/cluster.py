"""The Slurm of all tests: the one of the example, examples/slurm/one_host.py."""

from one_host import Cluster, ClusterError

__all__ = ["Cluster", "ClusterError"]
