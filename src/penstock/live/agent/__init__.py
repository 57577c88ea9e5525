"""The agent: part of `penstock run`, or one process per compute node, beside the jobs.

`job_agent.py` reports phases, and opens and closes the gate; `phase_sampler.py` finds the phases.
"""
