"""Measurements on a live deployment: explorer and surveys."""
