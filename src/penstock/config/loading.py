"""Loading the configuration from its sources: TOML file, environment, command line.

Later sources win: defaults, then the first file that exists (see `find`), then the environment
(`PENSTOCK_SITE__NODES=96` is `nodes` of `[site]`), then the command line (`--set site.nodes=96`).
Options belong to the policy that was set with them: naming another policy drops them.
"""

import os
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from penstock.config.section import Field, Section, fields, values
from penstock.config.sections import OWN, POLICY_SECTIONS, Config, window
from penstock.errors import InputError, unknown
from penstock.files import reason

__all__ = ["OWN", "POLICY_SECTIONS", "Config", "values", "window"]

PREFIX = "PENSTOCK_"
FILES = ("penstock.toml", "~/.config/penstock/penstock.toml", "/etc/penstock/penstock.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The source of a value: a file, a variable or a flag, by name."""

    kind: Literal["default", "file", "environment", "command line"] = "default"
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value from one source; a `text` value may be TOML or a bare string."""

    key: str
    value: Any
    origin: Origin
    text: bool = False

    @classmethod
    def parse(cls, argument: str) -> "Setting":
        """Read the `section.key=value` of a `--set`."""
        key, equals, text = (part.strip() for part in argument.partition("="))
        if not equals:
            raise InputError(f"--set {argument!r} is not of the form SECTION.KEY=VALUE")
        if "." not in key:
            homes = [name for name, kind in section_types().items() if key in _keys(kind)]
            near = f"; did you mean '{homes[0]}.{key}'?" if homes else ""
            raise InputError(f"--set {argument!r} is not of the form SECTION.KEY=VALUE{near}")
        return cls.flag("--set", key, text)

    @classmethod
    def flag(cls, name: str, key: str, value: Any) -> "Setting":
        """Return what a flag of the command line sets."""
        origin = Origin(kind="command line", name=name)
        return cls(key=key, value=value, origin=origin, text=isinstance(value, str))


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The effective configuration, and the origin of each value."""

    config: Config
    origins: Mapping[str, Origin]
    file: Path | None

    @contextmanager
    def blame(self, *keys: str) -> Iterator[None]:
        """Put the origin of one of the keys in front of an error about it."""
        try:
            yield
        except InputError as error:
            message = str(error)

            def position(key: str) -> int:
                positions = message.find(key), message.find(repr(key.rpartition(".")[2]))
                return min((at for at in positions if at >= 0), default=len(message))

            # The key that the message names first, or else one that was set.
            origins = [self.origins.get(key, Origin()).name for key in sorted(keys, key=position)]
            source = next(filter(None, origins), "")
            raise InputError(f"{source}: {error}" if source else str(error)) from error

    def check_policy(self, section: str) -> None:
        """Make the policy of a section, to raise InputError for one that cannot be made."""
        options = sorted(key for key in self.origins if key.startswith(f"{section}.options"))
        with self.blame(*options, f"{section}.policy"):
            self.config.make(section)


def load(
    path: Path | str | None = None,
    settings: Sequence[Setting] = (),
    *,
    defaults: Sequence[Setting] = (),
    environment: Mapping[str, str] | None = None,
    policies: Collection[str] = (),
) -> Loaded:
    """Return the effective configuration; raise InputError for anything unknown or impossible.

    `defaults` are those of a verb, where they differ from the sections'. `policies` names the
    sections whose policies the caller will use: only these are made, and checked.
    """
    environment = os.environ if environment is None else environment
    file = find(path, environment)
    merged, origins = dict[str, Any](), dict[str, Origin]()
    for layer in (defaults, _from_file(file), _from_environment(environment), settings):
        converted = [setting for raw in layer for setting in _convert(raw)]
        for section in POLICY_SECTIONS:
            policy = merged.get(f"{section}.policy", getattr(Config(), section).policy)
            if any(s.key == f"{section}.policy" and s.value != policy for s in converted):
                for key in [key for key in merged if key.startswith(f"{section}.options.")]:
                    del merged[key], origins[key]
        merged |= {setting.key: setting.value for setting in converted}
        origins |= {setting.key: setting.origin for setting in converted}
    loaded = Loaded(config=_build(merged), origins=origins, file=file)
    for name, kind in section_types().items():
        section = getattr(loaded.config, name.replace("-", "_"))
        if isinstance(section, Section):
            with loaded.blame(*(f"{name}.{field.key}" for field in fields(kind))):
                section.check()
    for section in policies:
        loaded.check_policy(section)
    return loaded


def find(path: Path | str | None, environment: Mapping[str, str]) -> Path | None:
    """Return the file to read: `path`, else $PENSTOCK_CONFIG, else the first of FILES."""
    sources = [("--config", path), (f"{PREFIX}CONFIG", environment.get(f"{PREFIX}CONFIG"))]
    for source, name in sources:
        if name:
            if not Path(name).is_file():
                raise InputError(f"{source}: there is no file {str(name)!r}; check the name")
            return Path(name)
    home = environment.get("HOME", "")
    candidates = [Path(name.replace("~", home)) for name in FILES if home or "~" not in name]
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def section_types() -> Mapping[str, type[msgspec.Struct]]:
    """Return the sections of the file."""
    return {field.encode_name: field.type for field in msgspec.structs.fields(Config)}


def _keys(section: type[msgspec.Struct]) -> dict[str, Field]:
    return {field.key: field for field in fields(section)}


def field(key: str) -> Field:
    """Return the field of a key such as "site.nodes"."""
    section, _, name = key.partition(".")
    return _keys(section_types()[section])[name]


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
        if section not in section_types() and isinstance(table, dict):
            raise InputError(f"{file}: {unknown('section', section, section_types())}")
        if section not in section_types():
            homes = [
                f"[{name}]" for name, kind in section_types().items() if section in _keys(kind)
            ]
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


def _convert(setting: Setting) -> Iterator[Setting]:
    """Yield the setting with its value in the key's type; a table of options one by one."""
    section, _, key = setting.key.partition(".")
    source = setting.origin.name
    if section not in section_types():
        raise InputError(f"{source}: {unknown('section', section, section_types())}")
    key, _, option = key.partition(".")
    keys = _keys(section_types()[section])
    options = key == "options" and section in POLICY_SECTIONS
    if key not in keys or (option and not options):
        raise InputError(
            f"{source}: {unknown('key', setting.key, [f'{section}.{k}' for k in keys])}"
        )
    readings = _readings(setting.value) if setting.text else [setting.value]
    value = readings[0] if option else _first_valid(readings, keys[key], setting)
    if not options:
        yield Setting(key=setting.key, value=value, origin=setting.origin)
        return
    for name, item in ({option: value} if option else value).items():
        full_name = f"{section}.options.{name.replace('_', '-')}"
        yield Setting(key=full_name, value=item, origin=setting.origin)


def _first_valid(readings: list[Any], field: Field, setting: Setting) -> Any:
    for value in readings:
        try:
            return field.read(value)
        except (ValueError, TypeError):  # msgspec.ValidationError and InputError included
            continue
    expected = f"a whole number, {field.description}" if field.is_integer else field.description
    raise InputError(f"{setting.origin.name}: {setting.key} is {setting.value!r}; give {expected}")


def _readings(text: str) -> list[Any]:
    """Return the possible meanings of a text: a TOML value if it is one, and the text itself."""
    try:
        table = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return [text]
    return [table["value"], text] if len(table) == 1 else [text]


def _build(merged: Mapping[str, Any]) -> Config:
    """Return the configuration of values that are converted already."""
    tables: dict[str, dict[str, Any]] = {}
    for key, value in merged.items():
        section, name, *option = key.split(".", 2)
        table = tables.setdefault(section.replace("-", "_"), {})
        if option:
            table.setdefault(name, {})[option[0]] = value
        else:
            table[name.replace("-", "_")] = value
    kinds = {name.replace("-", "_"): kind for name, kind in section_types().items()}
    built: dict[str, Any] = {name: kinds[name](**table) for name, table in tables.items()}
    return Config(**built)
