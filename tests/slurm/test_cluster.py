"""The Slurm that the other tests stand on: real daemons, several nodes, several users."""

from slurm.cluster import Cluster


def test_four_nodes_run_a_job(slurm: Cluster) -> None:
    output = slurm.srun("-N4", "sh", "-c", "echo $SLURMD_NODENAME").stdout
    assert sorted(output.split()) == ["n0", "n1", "n2", "n3"]


def test_another_user_runs_a_job(slurm: Cluster) -> None:
    assert slurm.srun("id", "-un", user="nobody").stdout.strip() == "nobody"
