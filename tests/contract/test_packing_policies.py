"""One check for every registered packer."""

import importlib

import pytest

from penstock import registry
from penstock.policies.base import Packer

NAMES = sorted(registry.POLICIES["packing"])
KNOWABLE = {"nodes", "processes", "volume", "compute", "curve"}


@pytest.mark.parametrize("name", NAMES)
def test_it_follows_the_protocol(name: str) -> None:
    policy = registry.policy("packing", name)
    assert isinstance(policy, Packer)
    assert policy.needs <= KNOWABLE
    with pytest.raises(ValueError, match="option"):
        registry.policy("packing", name, {"no-such-option": 1})


@pytest.mark.parametrize("name", NAMES)
def test_one_policy_one_file_of_a_page(name: str) -> None:
    module_name, _, class_name = registry.table("packing")[name].partition(":")
    module = importlib.import_module(module_name)
    assert module_name.rpartition(".")[2] == name.replace("-", "_")
    assert class_name == "".join(word.capitalize() for word in name.split("-"))
    assert module.__doc__ is not None
    assert module.__doc__.startswith(f"{name}: ")
    assert "aper packs" in module.__doc__
    for option in registry.options(registry.load("packing", name)):
        assert f"`{option}`" in module.__doc__, option
