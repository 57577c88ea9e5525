"""Campaigns: cells, their journal, and the executors that run them."""
