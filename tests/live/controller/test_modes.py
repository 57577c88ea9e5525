"""Users' modes: of whom they can be, and how they are taken away."""

import pytest
from live.controller.turn_harness import TurnHarness

from penstock.errors import InputError
from penstock.live.protocol import messages
from penstock.live.protocol.users import canonical_user, name_of


def test_a_user_whom_nobody_knows_is_refused_with_near_names() -> None:
    harness = TurnHarness()
    with pytest.raises(InputError, match=r"no user 'nobodi' .* did you mean 'nobody'"):
        harness.turn_service.set_mode(messages.SetMode(mode="enforce", user="nobodi"))
    assert harness.turn_service.modes.users == {}


@pytest.mark.parametrize("user", ["zzzzzz", "", "4294967290", "9" * 40, "root\0"])
def test_names_and_numbers_of_nobody_are_refused(user: str) -> None:
    with pytest.raises(InputError, match="there is no user"):
        canonical_user(user)


def test_a_number_means_the_user_of_that_number() -> None:
    """Jobs have names: a mode of a number would be nobody's."""
    harness = TurnHarness()
    harness.turn_service.set_mode(messages.SetMode(mode="observe", user="0"))
    assert harness.turn_service.modes.users == {name_of(0): "observe"}


def test_a_user_of_another_host_is_known_while_a_job_runs_and_forgotten_at_will() -> None:
    harness = TurnHarness()
    harness.start("a", user="elsewhere")
    harness.turn_service.set_mode(messages.SetMode(mode="observe", user="elsewhere"))
    assert harness.turn_service.modes.of("elsewhere") == "observe"
    harness.turn_service.set_mode(messages.SetMode(mode="default", user="elsewhere"))
    assert harness.turn_service.modes.of("elsewhere") == "enforce"
    assert harness.turn_service.modes.users == {}


def test_to_clear_a_mode_that_nobody_has_changes_nothing() -> None:
    harness = TurnHarness()
    harness.turn_service.set_mode(messages.SetMode(mode="default", user="zzzzzz"))
    assert harness.turn_service.modes.users == {}


def test_the_site_has_no_default() -> None:
    with pytest.raises(InputError, match="needs --user"):
        TurnHarness().turn_service.set_mode(messages.SetMode(mode="default"))


def test_the_kill_switch_remembers_the_mode_however_it_is_turned_on_and_off() -> None:
    """`penstock mode off` and PUT /v1/kill-switch are one switch, with one memory."""
    harness = TurnHarness(mode="enforce")
    service = harness.turn_service
    service.set_mode(messages.SetMode(mode="off"))
    assert (service.modes.site, service.modes.of("ann")) == ("off", "off")
    service.set_kill_switch(False)
    assert service.modes.site == "enforce"
    service.set_kill_switch(True)
    service.set_site_mode("advise")
    assert (service.modes.site, service.modes.site_mode) == ("off", "advise")
    service.set_mode(messages.SetMode(mode="observe"))
    assert (service.modes.site, service.modes.kill_switch) == ("observe", False)


def test_a_site_that_begins_with_the_kill_switch_on_observes_once_it_is_off() -> None:
    modes = TurnHarness(mode="off").turn_service.modes
    assert (modes.site, modes.kill_switch, modes.site_mode) == ("off", True, "observe")
