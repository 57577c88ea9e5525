"""Users' modes: of whom they can be, and how they are taken away."""

import pytest
from live.controller.test_multi_host_jobs import Heard

from penstock.errors import InputError
from penstock.live.protocol import messages
from penstock.live.protocol.users import canonical_user, name_of


def test_a_user_whom_nobody_knows_is_refused_with_near_names() -> None:
    heard = Heard()
    with pytest.raises(InputError, match=r"no user 'nobodi' .* did you mean 'nobody'"):
        heard.turn_service.govern(messages.SetMode(mode="enforce", user="nobodi"))
    assert heard.turn_service.modes.users == {}


@pytest.mark.parametrize("user", ["zzzzzz", "", "4294967290", "9" * 40, "root\0"])
def test_names_and_numbers_of_nobody_are_refused(user: str) -> None:
    with pytest.raises(InputError, match="there is no user"):
        canonical_user(user)


def test_a_number_means_the_user_of_that_number() -> None:
    """Jobs have names: a mode of a number would be nobody's."""
    heard = Heard()
    heard.turn_service.govern(messages.SetMode(mode="observe", user="0"))
    assert heard.turn_service.modes.users == {name_of(0): "observe"}


def test_a_user_of_another_host_is_known_while_a_job_runs_and_forgotten_at_will() -> None:
    heard = Heard()
    heard.start("a", user="elsewhere")
    heard.turn_service.govern(messages.SetMode(mode="observe", user="elsewhere"))
    assert heard.turn_service.modes.of("elsewhere") == "observe"
    heard.turn_service.govern(messages.SetMode(mode="default", user="elsewhere"))
    assert heard.turn_service.modes.of("elsewhere") == "enforce"
    assert heard.turn_service.modes.users == {}


def test_to_clear_a_mode_that_nobody_has_changes_nothing() -> None:
    heard = Heard()
    heard.turn_service.govern(messages.SetMode(mode="default", user="zzzzzz"))
    assert heard.turn_service.modes.users == {}


def test_the_site_has_no_default() -> None:
    with pytest.raises(InputError, match="of a user"):
        Heard().turn_service.govern(messages.SetMode(mode="default"))
