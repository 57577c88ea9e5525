"""The controller: one process per site, which decides.

Who waits: `turns.py`, which asks `penstock/core/manager.py`. Who tells the agents:
`turn_service.py`. Who tells people: `status.py` and `explain.py`.
"""
