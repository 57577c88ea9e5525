"""The agent: part of `penstock run`, or one process per compute node, beside the jobs."""
