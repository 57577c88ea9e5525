"""Where values come from, which wins, and what a wrong one says."""

import math
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock import config
from penstock.config import POLICY_SECTIONS, Setting, load, loading
from penstock.config.campaign import CampaignSection
from penstock.config.tuning import PARAMETERS, TuningSection
from penstock.errors import InputError
from penstock.io_node_settings import SCHEDULERS, IoNodeSettings
from penstock.live.ionode import _ionode
from penstock.model import Value

FILE = """
[site]
name = "plafrim"
nodes = 96
bandwidth = "2 GiB/s"
capacity = [1, 0.9]

[sharing]
policy = "set-10"
options = {unknown = 4}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "penstock.toml"
    path.write_text(FILE)
    return path


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of the machine counts here."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.setattr(loading, "FILES", loading.FILES[:2])


def test_defaults() -> None:
    loaded = load(environment={})
    assert loaded.config == config.Config()
    assert loaded.origins == {}
    assert loaded.file is None


def test_a_file(file: Path) -> None:
    loaded = load(file, environment={})
    site = loaded.config.site.site()
    assert (site.name, site.nodes, site.bandwidth, site.capacity) == (
        "plafrim",
        96,
        2 * 2**30,
        (1.0, 0.9),
    )
    assert loaded.config.sharing.sharing().unknown == 4  # type: ignore[attr-defined]
    assert str(loaded.origins["site.nodes"]) == f"file {file}"
    assert "site.resources" not in loaded.origins


def test_command_line_over_environment_over_file(file: Path) -> None:
    environment = {"PENSTOCK_SITE__NODES": "48", "PENSTOCK_SITE__RESOURCES": "3"}
    settings = [Setting.parse("site.nodes=24")]
    loaded = load(file, settings, environment=environment)
    assert loaded.config.site.nodes == 24
    assert loaded.config.site.resources == 3
    assert loaded.config.site.name == "plafrim"
    assert str(loaded.origins["site.nodes"]) == "command line --set"
    assert str(loaded.origins["site.resources"]) == "environment PENSTOCK_SITE__RESOURCES"


def test_variables_without_a_section_are_others_business() -> None:
    environment = {"PENSTOCK_DISABLE": "1", "PENSTOCK_CONFIG": "", "OTHER__KEY": "x"}
    assert load(environment=environment).config == config.Config()


def test_the_last_of_two_settings_counts() -> None:
    settings = [Setting.parse("site.nodes=1"), Setting.parse("site.nodes=2")]
    assert load(settings=settings, environment={}).config.site.nodes == 2


def test_options_stay_with_their_policy(file: Path) -> None:
    other = [Setting.parse("sharing.policy=fair-share")]
    assert load(file, other, environment={}).config.sharing.options == {}
    same = [Setting.parse("sharing.policy=set-10")]
    assert load(file, same, environment={}).config.sharing.options == {"unknown": 4}
    both = [
        Setting.parse("sharing.options.unknown=7"),
        Setting.parse("sharing.policy=share-priority"),
    ]
    assert load(file, both, environment={}).config.sharing.options == {"unknown": 7}


def test_a_table_takes_single_entries(tmp_path: Path) -> None:
    file = tmp_path / "tables.toml"
    file.write_text("[live]\nusers = { ada = 'enforce', root = 'enforce' }")
    environment = {"PENSTOCK_LIVE__USERS__ROOT": "observe", "PENSTOCK_LIVE__USERS__A_B": "advise"}
    one = [Setting.parse("live.users.ada=off")]
    loaded = load(file, one, environment=environment)
    assert loaded.config.live.users == {"ada": "off", "root": "observe", "a_b": "advise"}
    assert str(loaded.origins["live.users.ada"]) == "command line --set"
    assert loaded.origin("live.users") == loaded.origins["live.users.ada"]
    whole = [*one, Setting.parse("live.users={ bob = 'advise' }")]
    assert load(file, whole, environment=environment).config.live.users == {"bob": "advise"}
    values = [Setting.parse("tuning.tune=['depth']"), Setting.parse("tuning.values.depth=[2, 4]")]
    assert load(settings=values, environment={}).config.tuning.values == {"depth": [2, 4]}


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("live.users.root=never", "live.users.root is 'never'; give one of observe, advise"),
        ("tuning.values.depth=4", "tuning.values.depth is '4'; give a list"),
        ("tuning.values.deep=[4]", "--set: tuning.values has 'deep'"),
        ("live.mode.root=observe", "unknown key 'live.mode.root'"),
        ("live.users.=observe", "unknown key 'live.users.'"),
    ],
)
def test_a_wrong_entry_of_a_table_is_refused(argument: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        load(settings=[Setting.parse(argument)], environment={})


@pytest.mark.parametrize(
    ("argument", "key", "value"),
    [
        ("site.name=5", "name", "5"),
        ("site.name='5'", "name", "5"),
        ("site.name=2024-01-01", "name", "2024-01-01"),
        ("site.bandwidth=2 GiB/s", "bandwidth", "2 GiB/s"),
        ("site.bandwidth=2e9", "bandwidth", 2e9),
        ("site.capacity=[1, 0.5]", "capacity", (1.0, 0.5)),
    ],
)
def test_values_on_the_command_line(argument: str, key: str, value: object) -> None:
    loaded = load(settings=[Setting.parse(argument)], environment={})
    assert getattr(loaded.config.site, key) == value


def test_where_a_file_is_looked_for(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".config" / "penstock").mkdir(parents=True)
    own = home / ".config" / "penstock" / "penstock.toml"
    own.write_text("[site]\nnodes = 1")
    named = tmp_path / "named.toml"
    named.write_text("[site]\nnodes = 2")
    environment = {"HOME": str(home)}
    assert load(environment=environment).config.site.nodes == 1
    monkeypatch.chdir(tmp_path)
    assert load(environment=environment).config.site.nodes == 96
    environment["PENSTOCK_CONFIG"] = str(named)
    assert load(environment=environment).config.site.nodes == 2
    assert load(file, environment=environment).config.site.nodes == 96


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[sit]\nnodes = 1", "unknown section 'sit'; did you mean 'site'"),
        ("[site]\nnods = 1", "unknown key 'site.nods'; did you mean 'site.nodes'"),
        ("nodes = 1", "'nodes' is outside a section; write it below \\[site\\]"),
        ("site = 1", "'site' is a section"),
        ("[site]\nnodes = 'many'", "site.nodes is 'many'; give a whole number"),
        ("[site]\nnodes = 1.5", "site.nodes is 1.5; give a whole number"),
        ("[site]\nnodes = true", "site.nodes is True; give a whole number"),
        ("[site]\nnodes = -1", "site.nodes is -1; give 0"),
        ("[site]\nnodes = 99999999999999999999", "give a whole number"),
        ("[site]\nresources = 0", "site.resources is 0; give at least 1"),
        ("[site]\nbandwidth = '0 GB/s'", "site.bandwidth is 0 B/s; give more than zero"),
        ("[site]\nbandwidth = '-2 GB/s'", "site.bandwidth.*zero or more"),
        ("[site]\nbandwidth = '2 Gb/s'", "site.bandwidth.*did you mean 'GB/s'"),
        ("[site]\nbandwidth = inf", "site.bandwidth.*finite"),
        ("[site]\ncapacity = []", "site.capacity is"),
        ("[site]\ncapacity = [2]", "site.capacity is"),
        ("[site]\ncapacity = 'x'", "site.capacity is 'x'; give a list"),
        ("[sharing]\npolicy = 'set-01'", "did you mean 'set-10'"),
        ("[sharing]\npolicy = './nowhere.py:X'", "does not exist"),
        ("[sharing.options]\nunknwon = 3", "unknown option of set-10 'unknwon'; did you mean"),
        ("[sharing.options]\nunknown = 'x'", "option 'unknown' of set-10 is 'x': expected int"),
        ("[sharing]\noptions = 3", "sharing.options is 3; give a table"),
        ("[simulation]\nwindow = '5'", "window '5' is not BEGIN:END"),
        ("[simulation]\nwindow = '5:3'", "it is empty"),
        ("[simulation]\nseed = -1", "simulation.seed is -1; give a whole number"),
        ("[site", "is not valid TOML"),
        ("\x00", "is not valid TOML"),
        ("[site]\nnodes = 1\nnodes = 2", "is not valid TOML"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        load(file, environment={}, policies=POLICY_SECTIONS)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_bytes(b"\xff\xfe[site]")
    with pytest.raises(InputError, match="is not valid TOML"):
        load(file, environment={})


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("nodes", "not of the form SECTION.KEY=VALUE"),
        ("nodes=3", "not of the form SECTION.KEY=VALUE"),
        ("site.nods=3", "--set: unknown key 'site.nods'; did you mean 'site.nodes'"),
        ("site.nodes.x=3", "--set: unknown key 'site.nodes.x'"),
        ("site.nodes=x", "--set: site.nodes is 'x'"),
        ("sharing.options.unknwon=3", "--set: unknown option"),
    ],
)
def test_a_wrong_setting_is_named(file: Path, argument: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(file, [Setting.parse(argument)], environment={}, policies=POLICY_SECTIONS)


BROKEN = """
[tuning]
policy = "./broken.py:Broken"

[packing]
policy = "no-such-policy"

[io-node]
scheduler = "twins"
quantum = "1 MiB"
window = "2 ms"
depth = 4
"""


def test_only_the_policies_that_are_used_are_made(tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(BROKEN)
    used = ("sharing", "allocation", "placement")
    assert load(file, environment={}, policies=used).config.tuning.policy.startswith("./broken")
    for section, message in (("tuning", "broken.py"), ("packing", "no-such-policy")):
        with pytest.raises(InputError, match=f"^{file}: .*{message}"):
            load(file, environment={}, policies=(section,))


def test_io_nodes_have_a_section_like_the_others(tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(BROKEN)
    environment = {"PENSTOCK_IO_NODE__STRIPE_SIZE": "64 KiB", "PENSTOCK_IO_NODE__WINDOW": "1 ms"}
    settings = [Setting.parse("io-node.depth=8"), Setting.parse("io-node.shares=concurrency")]
    loaded = load(file, settings, environment=environment)
    assert loaded.config.io_node == IoNodeSettings(
        scheduler="twins",
        quantum=1 << 20,
        window=1e-3,
        stripe_size=64 << 10,
        depth=8,
        shares="concurrency",
    )
    assert str(loaded.origins["io-node.depth"]) == "command line --set"
    assert str(loaded.origins["io-node.window"]) == "environment PENSTOCK_IO_NODE__WINDOW"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("quantum=1MiB", "did you mean 'io-node.quantum'"),
        ("io-node.quantun=1MiB", "unknown key.*did you mean 'io-node.quantum'"),
        ("io-node.depth=many", "io-node.depth is 'many'; give the number of batches"),
        ("io-node.depth=0", "io-node.depth is '0'"),
        ("io-node.window=1 MiB", "io-node.window is '1 MiB'; give the time"),
        ("io-node.shares=files", "io-node.shares is 'files'; give what job weights apportion"),
    ],
)
def test_wrong_settings_of_io_nodes_are_refused(argument: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(settings=[Setting.parse(argument)], environment={})


def test_a_wrong_variable_is_named(file: Path) -> None:
    with pytest.raises(InputError, match=r"^PENSTOCK_SITE__NODS: unknown key"):
        load(file, environment={"PENSTOCK_SITE__NODS": "3"})
    with pytest.raises(InputError, match=r"^PENSTOCK_SITE__RESOURCES: site.resources is 0"):
        load(file, environment={"PENSTOCK_SITE__RESOURCES": "0"})


@pytest.mark.parametrize("name", ["nowhere.toml", "."])
def test_a_file_that_is_not_there(name: str) -> None:
    with pytest.raises(InputError, match=r"^--config: there is no file"):
        load(name, environment={})
    with pytest.raises(InputError, match=r"^PENSTOCK_CONFIG: there is no file"):
        load(environment={"PENSTOCK_CONFIG": name})


def unreadable(folder: Path) -> Path:
    """Return a file that no user can read, not even root: reading gives an error."""
    path = folder / ".config" / "penstock" / "penstock.toml"
    path.parent.mkdir(parents=True)
    path.symlink_to("/proc/self/mem")
    return path


def test_a_default_file_that_cannot_be_read_is_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An I/O node that runs as another user, with root's HOME: nobody named the file."""
    path = unreadable(tmp_path / "home")
    site = tmp_path / "etc.toml"
    site.write_text("[site]\nnodes = 7\n")
    monkeypatch.setattr(loading, "FILES", (*loading.FILES, str(site)))
    loaded = load(environment={"HOME": str(tmp_path / "home")})
    assert (loaded.config.site.nodes, loaded.file) == (7, site)
    line = capsys.readouterr().err
    assert line.startswith(f"penstock: warning: {path} cannot be read (")
    assert line.endswith("); it is passed over\n")
    # As with a directory that may not be searched, the question itself fails.
    assert load(environment={"HOME": "/x" * 5000}).config.site.nodes == 7
    assert "penstock.toml cannot be read (file name too long); it is" in capsys.readouterr().err


def test_a_named_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    path = str(unreadable(tmp_path))
    with pytest.raises(InputError, match=r"^--config: .*penstock\.toml cannot be read: "):
        load(path, environment={})
    with pytest.raises(InputError, match=r"^PENSTOCK_CONFIG: .*penstock\.toml cannot be read: "):
        load(environment={"PENSTOCK_CONFIG": path})
    with pytest.raises(InputError, match=r"^--config: .* cannot be read: file name too long"):
        load("x" * 5000, environment={})


def test_a_window_in_words() -> None:
    assert config.window("2 h:4 h") == (7200.0, 14400.0)
    assert config.window("6000:14000") == (6000.0, 14000.0)


def test_schedulers_are_those_of_io_nodes() -> None:
    assert sorted(SCHEDULERS) == sorted(_ionode.scheduler_names())


TAKEN: dict[str, dict[Any, Value]] = {
    "window": {"1 us": 1e-6, "520 us": 520e-6, 1: 1.0},
    "depth": {1: 1, 2.0: 2, 1024: 1024},
    "aggregation": {"4 KiB": 4096, "1 GiB": 2**30},
    "scheduler": {name: name for name in SCHEDULERS},
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_values_that_are_tried_are_taken_by_io_nodes(name: str) -> None:
    """Of what the section lets through, and of its own defaults, an I/O node refuses nothing."""
    section = TuningSection(tune=(name,), values={name: list(TAKEN[name])})
    (given,) = section.parameters({})
    assert given.values[: len(TAKEN[name])] == tuple(TAKEN[name].values())
    (plain,) = TuningSection(tune=(name,)).parameters({})
    assert plain.values == PARAMETERS[name].values
    node = _ionode.Node(0, 1)
    for value in (*given.values, *plain.values):
        node.configure({name: value})
        assert node.settings()[name] == value


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("window", "0.5 us", "give 1 us to 1 s"),
        ("window", "1.1 s", "give 1 us to 1 s"),
        ("window", 0, "give 1 us to 1 s"),
        ("window", [1], "not a value of it"),
        ("depth", 0, "give 1 to 1024"),
        ("depth", -1, "give 1 to 1024"),
        ("depth", 1025, "give 1 to 1024"),
        ("depth", 1.5, "not a value of it"),
        ("depth", math.inf, "not a value of it"),
        ("depth", math.nan, "not a value of it"),
        ("depth", True, "not a value of it"),
        ("aggregation", "4095 B", "give 4 KiB to 1 GiB"),
        ("aggregation", "2 GiB", "give 4 KiB to 1 GiB"),
        ("aggregation", None, "not a value of it"),
        ("scheduler", "twin", "did you mean 'twins'"),
        ("scheduler", 7, "not a value of it"),
    ],
)
def test_values_that_io_nodes_would_refuse_are_refused(name: str, value: Any, why: str) -> None:
    section = TuningSection(tune=(name,), values={name: [*TAKEN[name], value]})
    with pytest.raises(InputError, match=f"tuning.values.{name}.*{why}"):
        section.parameters({})


def test_the_campaign_of_the_documentation_is_a_configuration(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs/simulate/campaigns.md"
    (example,) = re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.M | re.S)
    (tmp_path / "penstock.toml").write_text(example)
    campaign = load(tmp_path / "penstock.toml", environment={}).config.campaign
    assert (campaign.on, campaign.jobs, campaign.walltime_seconds(), campaign.memory_bytes()) == (
        "slurm",
        20,
        3600,
        8 * 2**30,
    )
    assert set(tomllib.loads(example)["campaign"]) | {"python"} == {
        field.encode_name for field in msgspec.structs.fields(CampaignSection)
    }


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("campaign.wait=soon", "campaign.wait"),
        ("campaign.walltime=1 s", "give 1 min or more"),
        ("campaign.memory=1 kB", "give 64 MiB or more"),
        ("campaign.jobs=0", "at least 1"),
        ("campaign.job=3", "did you mean 'campaign.jobs'"),
    ],
)
def test_a_wrong_campaign_is_refused(setting: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(None, [Setting.parse(setting)], environment={})
