"""What simulations said, measured on real processes: jobs, controller, I/O nodes, and gates.

All but the file system is real. That is emulated, so that a laptop has a cluster's timing.
"""
