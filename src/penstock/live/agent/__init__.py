"""The agent: one process per job or per node, next to the jobs."""
