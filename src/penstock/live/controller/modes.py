"""How far the controller goes: observe, advise or enforce; off opens every gate."""

from collections.abc import Mapping

from penstock.config.sections import MODES
from penstock.errors import InputError

DEFAULT = "default"
"""Not a mode: a user's own is taken away."""


class Modes:
    """The modes in force; the site's `off` is above all."""

    def __init__(self, site: str, users: Mapping[str, str]) -> None:
        self.site = site
        self.users = dict(users)

    def of(self, user: str) -> str:
        """Return the mode of a user's jobs."""
        return "off" if self.site == "off" else self.users.get(user, self.site)

    def set(self, mode: str, user: str | None) -> None:
        """Change the site's mode, or a user's; a user's `default` is the site's."""
        if mode == DEFAULT:
            if user is None:
                raise InputError(f"{DEFAULT} is of a user, whose jobs go by the site's mode again")
            self.users.pop(user, None)
            return
        if mode not in MODES:
            raise InputError(f"mode {mode!r} is none of {', '.join(MODES)}")
        if user is None:
            self.site = mode
        elif mode == "off":
            raise InputError("off is for the whole site; a user's jobs can be observed")
        else:
            self.users[user] = mode
