"""How far the controller goes: observe, advise or enforce. The kill switch opens every gate."""

from collections.abc import Mapping

from penstock.config.sections import MODES
from penstock.errors import InputError

DEFAULT = "default"
"""Not a mode: it removes a user's own mode."""
OFF = "off"
"""The site's mode while the kill switch is on."""


class Modes:
    """The modes in force. The kill switch is above all of them, and forgets none."""

    def __init__(self, site: str, users: Mapping[str, str]) -> None:
        self.kill_switch = site == OFF
        self.site_mode = "observe" if self.kill_switch else site
        """The site's mode whenever the kill switch is off."""
        self.users = dict(users)

    @property
    def site(self) -> str:
        """The site's mode now."""
        return OFF if self.kill_switch else self.site_mode

    def of(self, user: str) -> str:
        """Return the mode of a user's jobs."""
        return OFF if self.kill_switch else self.users.get(user, self.site_mode)

    def set(self, mode: str, user: str | None = None) -> None:
        """Change a user's mode, or the site's: `off` turns the kill switch on, others off."""
        if mode == DEFAULT:
            if user is None:
                raise InputError(f"{DEFAULT!r} needs --user: it removes that user's own mode")
            self.users.pop(user, None)
            return
        if mode not in MODES:
            raise InputError(f"there is no mode {mode!r}; the modes are {', '.join(MODES)}")
        if user is not None:
            if mode == OFF:
                raise InputError("'off' is for the whole site; use 'observe' for one user's jobs")
            self.users[user] = mode
            return
        self.kill_switch = mode == OFF
        if not self.kill_switch:
            self.site_mode = mode
