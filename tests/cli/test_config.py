"""penstock config show: what is in force, as a file that means the same."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock import config


def test_what_is_shown_is_a_file_that_means_the_same(
    penstock: Any, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_SITE__NODES", "96")
    name = 'a "quoted" \\ name\ttab \N{SNOWMAN} \x7f'
    settings: tuple[str, ...] = ("--set", f"site.name={name}", "--set", "site.capacity=[1, 0.9]")
    settings += ("--set", "site.bandwidth=2 GiB/s", "--set", "simulation.window=1:2")
    settings += ("--set", "sharing.options.unknown=3", "--set", "packing.policy=first-fit")
    settings += ("--set", "packing.options.estimate=io-bound", "--set", "allocation.policy=mckp")
    settings += ("--set", "site.direct=true", "--set", "allocation.remap-delay=10 s")
    shown = penstock("config", "show", *settings)
    assert shown.status == 0
    file = directory / "shown.toml"
    file.write_text(shown.out)
    again = config.load(file, environment={}).config
    given = [config.Setting.parse(argument) for argument in settings[1::2]]
    expected = config.load(None, given).config
    # The file also says which options are at their defaults.
    assert vars(again.allocation.allocator()) == vars(expected.allocation.allocator())
    assert vars(again.tuning.tuner()) == vars(expected.tuning.tuner())
    allocation = msgspec.structs.replace(again.allocation, options={})
    tuning = msgspec.structs.replace(again.tuning, options={})
    assert msgspec.structs.replace(again, allocation=allocation, tuning=tuning) == expected
    assert again.site.name == name
    assert "nodes = 96  # environment PENSTOCK_SITE__NODES" in shown.out
    assert "resources = 1  # default" in shown.out
    assert 'bandwidth = "2 GiB/s"  # command line --set' in shown.out


def test_file_systems_are_shown_as_tables(penstock: Any, directory: Path) -> None:
    setting = "site.file-systems={home={roots=['/home']}, scratch={roots=['/s'], bandwidth=1e9}}"
    (directory / "shown.toml").write_text(penstock("config", "show", "--set", setting).out)
    again = config.load(directory / "shown.toml", environment={}).config
    given = config.load(None, [config.Setting.parse(setting)]).config
    assert again.site == given.site
    assert list(again.site.declared()) == ["home", "scratch"]
    values = penstock("config", "show", "--set", setting, "--json").json["values"]
    assert values["site"]["file-systems"]["home"] == {"roots": ["/home"]}


def test_defaults_are_a_file_too(penstock: Any, directory: Path) -> None:
    (directory / "penstock.toml").write_text(penstock("config", "show").out)
    result = penstock("config", "show", "--json").json
    assert result["file"] == "penstock.toml"
    assert result["origins"]["site.nodes"] == "file penstock.toml"
    assert result["origins"]["site.bandwidth"] == "default"


def test_json_has_values_and_origins(penstock: Any) -> None:
    result = penstock("config", "show", "--set", "site.nodes=3", "--json").json
    assert result["values"]["site"]["nodes"] == 3
    assert result["values"]["sharing"] == {
        "policy": "set-10",
        "options": {"unknown": 5},
        "scope": "file-system",
    }
    assert result["origins"]["site.nodes"] == "command line --set"
    assert result["origins"]["sharing.options.unknown"] == "default"
    assert result["file"] is None


def test_wrong_knowledge_is_found_without_a_simulation(penstock: Any, directory: Path) -> None:
    (directory / "penstock.toml").write_text("[simulation]\nknowledge = 'psychic'\n")
    result = penstock("config", "show")
    assert result.status == 2
    assert result.err.startswith("penstock: error: penstock.toml: knowledge 'psychic'")
