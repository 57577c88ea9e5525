"""The vocabulary of actions is closed: replays and records know every one of them."""

import penstock.live.controller.turn_state
import penstock.sim.reference
from penstock.model import action
from penstock.model.action import Action


def test_every_action_is_in_the_vocabulary() -> None:
    assert {kind.__module__ for kind in Action.__subclasses__()} == {action.__name__}
    assert not issubclass(penstock.live.controller.turn_state.Release, Action)
