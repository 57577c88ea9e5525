"""Sharing policies: who may transfer now, and with which share; one file per policy."""
