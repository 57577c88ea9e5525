"""Errors that one process of a site reports to another."""

from penstock.errors import InputError


class FullError(InputError):
    """There is no room for another connection, or another job of its user."""
