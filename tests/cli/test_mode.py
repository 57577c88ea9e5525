"""penstock mode: what it asks the controller, and what it prints."""

from typing import Any

import pytest

from penstock.errors import InputError
from penstock.live.deployment import launcher
from penstock.live.protocol import messages


class Site:
    """Answers as a controller does, and records the requests."""

    def __init__(self) -> None:
        self.mode, self.modes = "observe", {"bob": "enforce"}
        self.requests: list[messages.Message] = []

    def ask(self, state: object, message: messages.Message, answer: object) -> messages.Message:
        self.requests.append(message)
        if isinstance(message, messages.SetMode):
            if message.user is None:
                self.mode = message.mode
            else:
                self.modes[message.user] = message.mode
            return messages.Done()
        return messages.Status(
            site="here",
            jobs=[],
            io_nodes=[],
            forwarded_bytes=0,
            direct_bytes=0,
            fail_open_total=0,
            mode=self.mode,
            modes=self.modes,
            policy="set-10",
        )


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    site = Site()
    monkeypatch.setattr("penstock.live.deployment.launcher.ask", site.ask)
    return site


def test_without_a_mode_nothing_is_changed(penstock: Any, site: Site) -> None:
    out = penstock("mode").out.splitlines()
    assert site.requests == [messages.GetStatus()]
    assert out[0].startswith("observe, for all users but bob: no job waits")
    assert out[1] == "bob: enforce: jobs wait for their turns"


def test_the_site_s_mode_is_not_said_to_hold_for_users_with_their_own(
    penstock: Any, site: Site
) -> None:
    """'mode enforce --user root' answered first that nobody waits."""
    site.modes = {}
    assert penstock("mode").out.splitlines() == [
        "observe: no job waits; 'penstock top' shows which would"
    ]
    first, second = penstock("mode", "enforce", "--user", "root").out.splitlines()
    assert first.startswith("observe, for all users but root: no job waits")
    assert second == "root: enforce: jobs wait for their turns"


@pytest.mark.parametrize(
    ("args", "mode", "modes"),
    [
        (("off",), "off", {"bob": "enforce"}),
        (("enforce",), "enforce", {"bob": "enforce"}),
        (("advise", "--user", "bob"), "observe", {"bob": "advise"}),
    ],
)
def test_a_change_is_told_as_the_controller_has_it_afterwards(
    penstock: Any, site: Site, args: tuple[str, ...], mode: str, modes: dict[str, str]
) -> None:
    answer = penstock("mode", *args, "--json").json
    assert answer == {"mode": mode, "users": modes, "policy": "set-10"}


def test_off_is_said_to_be_above_users_modes(penstock: Any, site: Site) -> None:
    """A user whose mode is listed as enforce must not be taken to wait."""
    assert "bob: enforce, but the site is off: no job waits" in penstock("mode", "off").out


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("enforced",), "did you mean 'enforce'"),
        (("--user", "bob"), "--user bob needs a MODE"),
        (("default",), "needs --user"),
    ],
)
def test_wrong_input_changes_nothing(
    penstock: Any, site: Site, args: tuple[str, ...], error: str
) -> None:
    result = penstock("mode", *args)
    assert (result.status, site.requests) == (2, [])
    assert error in result.err


def test_a_kill_switch_that_nobody_hears_says_when_gates_open(
    penstock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object) -> None:
        raise launcher.LaunchError("the controller does not answer")

    monkeypatch.setattr("penstock.live.deployment.launcher.ask", silent)
    result = penstock("mode", "off")
    assert result.status == 1
    assert "within the lease" in result.err


def test_what_the_controller_refuses_is_told(
    penstock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object) -> None:
        raise InputError("off is for the whole site")

    monkeypatch.setattr("penstock.live.deployment.launcher.ask", refuses)
    result = penstock("mode", "off", "--user", "bob")
    assert (result.status, "off is for the whole site" in result.err) == (2, True)
