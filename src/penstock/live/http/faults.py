"""What can be wrong with a request that is well put: 404 and 409."""

from penstock.errors import InputError


class NotFoundError(InputError):
    """There is no such thing."""


class ConflictError(InputError):
    """It cannot be done as things are now."""
