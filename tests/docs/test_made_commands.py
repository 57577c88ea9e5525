"""The commands on pages that are made from the code: each is run, the same one once."""

import shlex
from pathlib import Path

import pytest
from docs import pages
from docs.pages import blocks, commands
from docs.shell_session import provide, quickly

from penstock import registry
from penstock.cli.verbs import up
from penstock.config import Config
from penstock.errors import InputError
from penstock.identities import io_nodes
from penstock.live.controller.io_node_map import IoNodePath
from penstock.live.controller.turn_service import TurnService

MADE = {page: text for page, text in pages.from_code().items() if blocks(text, "console")}
LIVE = ("penstock up ", "penstock run ", "penstock down ")
STARTED = {
    "docs/reference/policies/sharing/fair-finish.md",
    "docs/reference/policies/allocation/size.md",
    "docs/reference/policies/placement/exclusive.md",
    "docs/reference/policies/tuning/thompson.md",
}
"""One of each kind is really brought up; the others differ in a name, and a controller takes it."""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("made")
    provide(made)
    return made


@pytest.fixture(scope="module")
def done() -> set[str]:
    return set()


def is_live(command: str) -> bool:
    return any(verb in command for verb in LIVE)


@pytest.mark.parametrize("page", MADE)
def test_commands(page: str, directory: Path, done: set[str]) -> None:
    for command in commands(MADE[page]):
        if command in done or (is_live(command) and page not in STARTED):
            continue
        ended = quickly(command, directory)
        assert ended.status == 0, f"{command}\n{ended.err}"
        assert ended.out, f"{command} prints nothing"
        if not is_live(command):
            done.add(command)


def test_a_policy_has_a_page() -> None:
    expected = {
        f"docs/reference/policies/{k}/{n}.md"
        for k, names in registry.POLICIES.items()
        for n in names
    }
    assert expected <= set(MADE)
    assert expected >= STARTED


def configured(command: str) -> Config:
    """Return the configuration that the words of a `penstock up` make."""
    words = shlex.split(command.partition("penstock up ")[2])
    context = up.up.make_context("up", words)
    return up.CONFIGURATION.load(dict(context.params)).config


def turn_service(config: Config) -> TurnService:
    return TurnService(
        config,
        io_nodes=2,
        send=lambda *_: None,
        set_weights=lambda *_: None,
        path=lambda _: IoNodePath(io_nodes([0])),
        assign=lambda *_: None,
    )


@pytest.mark.parametrize(
    "page", [page for page in MADE if page.startswith("docs/reference/policies/")]
)
def test_a_controller_takes_what_the_page_says_it_takes(page: str) -> None:
    ups = [command for command in commands(MADE[page]) if "penstock up " in command]
    kind, file = page.split("/")[-2:]
    if ups:
        config = configured(ups[0])
        turn_service(config)
        assert getattr(config, kind).policy == file.removesuffix(".md")
    elif kind == "sharing":
        refused = configured(f"penstock up --io-nodes 2 --policy {file.removesuffix('.md')}")
        with pytest.raises(InputError, match="cannot know"):
            turn_service(refused)
    elif kind in ("allocation", "placement"):
        flags = {
            "allocation": "--allocation ",
            "placement": "--allocation one --set placement.policy=",
        }
        refused = configured(f"penstock up --io-nodes 2 {flags[kind]}{file.removesuffix('.md')}")
        with pytest.raises(InputError, match="cannot run live"):
            turn_service(refused)
    else:
        assert kind == "packing"
