"""The one configuration of simulation and live control: TOML, environment, command line.

What comes later wins: defaults, then the first file found (see `find`), then the environment
(`PENSTOCK_SITE__NODES=96` is `nodes` of `[site]`), then the command line (`--set site.nodes=96`).
Options of a policy belong to it: who names another policy leaves them behind.
"""

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from penstock.config.sections import DECIDED, OWN, Config, SiteSection, window
from penstock.errors import InputError, unknown
from penstock.files import reason

__all__ = ["DECIDED", "OWN", "Config", "Loaded", "Origin", "Setting", "load", "window"]

PREFIX = "PENSTOCK_"
FILES = ("penstock.toml", "~/.config/penstock/penstock.toml", "/etc/penstock/penstock.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a value came from: a file, a variable or a flag by its name."""

    kind: Literal["default", "file", "environment", "command line"] = "default"
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value from one place; `text` values may be written as TOML or plainly."""

    key: str
    value: Any
    origin: Origin
    text: bool = False

    @classmethod
    def parse(cls, argument: str) -> "Setting":
        """Read the `section.key=value` of a `--set`."""
        key, equals, text = argument.partition("=")
        if not equals or "." not in key:
            raise InputError(f"--set {argument!r} is not of the form section.key=value")
        return cls.flag("--set", key.strip(), text.strip())

    @classmethod
    def flag(cls, name: str, key: str, text: str) -> "Setting":
        """Return what a flag of the command line sets."""
        return cls(key=key, value=text, origin=Origin(kind="command line", name=name), text=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What is in force, and where each value came from."""

    config: Config
    origins: Mapping[str, Origin]
    file: Path | None

    @contextmanager
    def blaming(self, *keys: str) -> Iterator[None]:
        """Put the place that set one of the keys in front of what is wrong with it."""
        try:
            yield
        except InputError as error:
            message = str(error)

            def named_at(key: str) -> int:
                places = message.find(key), message.find(repr(key.rpartition(".")[2]))
                return min((at for at in places if at >= 0), default=len(message))

            # The key that the message names first, or else one that somebody set.
            origins = [self.origins.get(key, Origin()).name for key in sorted(keys, key=named_at)]
            place = next(filter(None, origins), "")
            raise InputError(f"{place}: {error}" if place else str(error)) from error


def load(
    path: Path | str | None = None,
    settings: Sequence[Setting] = (),
    *,
    defaults: Sequence[Setting] = (),
    environment: Mapping[str, str] | None = None,
) -> Loaded:
    """Return the configuration in force; raise InputError for anything unknown or impossible.

    `defaults` are a verb's own, where they differ from those of the sections.
    """
    environment = os.environ if environment is None else environment
    file = find(path, environment)
    values, origins = dict[str, Any](), dict[str, Origin]()
    for layer in (defaults, _from_file(file), _from_environment(environment), settings):
        given = [checked for setting in layer for checked in _checked(setting)]
        for section in DECIDED:
            policy = values.get(f"{section}.policy", getattr(Config(), section).policy)
            if any(s.key == f"{section}.policy" and s.value != policy for s in given):
                for key in [key for key in values if key.startswith(f"{section}.options.")]:
                    del values[key], origins[key]
        values |= {setting.key: setting.value for setting in given}
        origins |= {setting.key: setting.origin for setting in given}
    loaded = Loaded(config=msgspec.convert(_nested(values), Config), origins=origins, file=file)
    with loaded.blaming(*(f"site.{key}" for key in _keys(SiteSection))):
        loaded.config.site.site()
    with loaded.blaming("simulation.window"):
        loaded.config.simulation.seconds()
    with loaded.blaming("live.lease", "live.max-wait"):
        loaded.config.live.seconds()
    with loaded.blaming("live.dirty-window"):
        loaded.config.live.window()
    with loaded.blaming("tuning.interval", "tuning.deadline"):
        loaded.config.tuning.seconds()
    with loaded.blaming("tuning.tune", "tuning.values"):
        loaded.config.tuning.parameters({})
    for check in (
        loaded.config.campaign.waits,
        loaded.config.campaign.limit,
        loaded.config.campaign.bytes,
    ):
        with loaded.blaming("campaign.wait", "campaign.walltime", "campaign.memory"):
            check()
    makers: dict[str, Callable[[], object]] = {
        "sharing": loaded.config.sharing.sharing,
        "allocation": loaded.config.allocation.allocator,
        "placement": loaded.config.placement.placer,
        "packing": loaded.config.packing.packer,
        "tuning": loaded.config.tuning.tuner,
    }
    for section, make in makers.items():
        options = sorted(key for key in origins if key.startswith(f"{section}.options"))
        with loaded.blaming(*options, f"{section}.policy"):
            make()
    with loaded.blaming("allocation.remap-delay"):
        loaded.config.allocation.delay()
    return loaded


def find(path: Path | str | None, environment: Mapping[str, str]) -> Path | None:
    """Return the file to read: the one named, $PENSTOCK_CONFIG, or the first there is of FILES."""
    named = [("--config", path), (f"{PREFIX}CONFIG", environment.get(f"{PREFIX}CONFIG"))]
    for name, given in named:
        if given:
            if not Path(given).is_file():
                raise InputError(f"{name}: there is no file {str(given)!r}; check the name")
            return Path(given)
    home = environment.get("HOME", "")
    candidates = [Path(name.replace("~", home)) for name in FILES if home or "~" not in name]
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def sections() -> Mapping[str, type[msgspec.Struct]]:
    """Return the sections of the file."""
    return {field.encode_name: field.type for field in msgspec.structs.fields(Config)}


def _keys(section: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.encode_name: field.type for field in msgspec.structs.fields(section)}


def describe(section: type[msgspec.Struct], key: str) -> str:
    """Return what a key is for, in words."""
    description: str = _keys(section)[key].__metadata__[0].description
    return description


def _from_file(file: Path | None) -> Iterator[Setting]:
    if file is None:
        return
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{file} is not valid TOML: {reason(error)}") from error
    except OSError as error:
        raise InputError(f"{file} cannot be read: {reason(error).lower()}") from error
    for section, table in tables.items():
        if section not in sections() and isinstance(table, dict):
            raise InputError(f"{file}: {unknown('section', section, sections())}")
        if section not in sections():
            homes = [f"[{name}]" for name, kind in sections().items() if section in _keys(kind)]
            below = homes[0] if homes else "a section's line"
            raise InputError(f"{file}: {section!r} is outside a section; write it below {below}")
        if not isinstance(table, dict):
            raise InputError(f"{file}: {section!r} is a section; write [{section}] and its keys")
        for key, value in table.items():
            yield Setting(
                key=f"{section}.{key}", value=value, origin=Origin(kind="file", name=str(file))
            )


def _from_environment(environment: Mapping[str, str]) -> Iterator[Setting]:
    for name, text in sorted(environment.items()):
        if name.startswith(PREFIX) and "__" in name:
            # A single underscore is part of a word, which TOML writes with a dash.
            key = name.removeprefix(PREFIX).replace("__", ".").replace("_", "-").lower()
            origin = Origin(kind="environment", name=name)
            yield Setting(key=key, value=text, origin=origin, text=True)


def _checked(setting: Setting) -> Iterator[Setting]:
    """Yield the setting with its value as the key's type wants it, an option each of a table."""
    section, _, key = setting.key.partition(".")
    place, known = setting.origin.name, sections()
    if section not in known:
        raise InputError(f"{place}: {unknown('section', section, known)}")
    key, _, option = key.partition(".")
    types = _keys(known[section])
    options = key == "options" and section in DECIDED
    if key not in types or (option and not options):
        keys = [f"{section}.{k}" for k in types]
        raise InputError(f"{place}: {unknown('key', setting.key, keys)}")
    candidates = _readings(setting.value) if setting.text else [setting.value]
    wanted = describe(known[section], key)
    value = candidates[0] if option else _converted(candidates, types[key], setting, wanted)
    if not options:
        yield Setting(key=setting.key, value=value, origin=setting.origin)
        return
    for name, item in ({option: value} if option else value).items():
        spelled = f"{section}.options.{name.replace('_', '-')}"
        yield Setting(key=spelled, value=item, origin=setting.origin)


def _converted(candidates: list[Any], wanted: Any, setting: Setting, description: str) -> Any:
    for value in candidates:
        try:
            return msgspec.convert(value, wanted)
        except msgspec.ValidationError:
            continue
    raise InputError(
        f"{setting.origin.name}: {setting.key} is {setting.value!r}; give {description}"
    )


def _readings(text: str) -> list[Any]:
    """Return what a plain text may mean: TOML if it is, and the text itself."""
    try:
        table = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return [text]
    return [table["value"], text] if len(table) == 1 else [text]


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    for key, value in values.items():
        *path, last = key.split(".", 2)
        table = tables
        for part in path:
            table = table.setdefault(part, {})
        table[last] = value
    return tables
