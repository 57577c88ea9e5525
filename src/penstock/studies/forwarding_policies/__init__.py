"""The arbitration study of paper forwarding, Chapter 5, re-run from the measured curves.

J. L. Bez, "Dynamic Tuning and Reconfiguration of the I/O Forwarding Layer in HPC Platforms", PhD
thesis, UFRGS, Porto Alegre, 2020.
"""
