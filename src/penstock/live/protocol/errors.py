"""Errors that one process of a site reports to another."""

from penstock.errors import InputError


class FullError(InputError):
    """The controller has no room for another connection, or for another job of this user."""
