"""Loading the configuration from its sources: TOML file, environment, command line.

Later sources win: defaults, then the first file that exists (see `_read`, and `trusted_files` for
whose file it may be), then the environment (`PENSTOCK_SITE__NODES=96` is `nodes` of `[site]`), then
the command line (`--set site.nodes=96`).
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

from penstock import registry, trusted_files
from penstock.config.section import Field, Section, fields, values
from penstock.config.sections import OWN, POLICY_SECTIONS, Config, window
from penstock.errors import InputError, unknown
from penstock.files import reason
from penstock.progress import message
from penstock.trusted_files import UntrustedFileError

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

    def origin(self, key: str) -> Origin:
        """Return the origin of a key; of a table, that of the entry that was set last."""
        parts = [part for part in self.origins if f"{part}.".startswith(f"{key}.")]
        return self.origins[parts[-1]] if parts else Origin()

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
            policy = getattr(self.config, section).policy
            if registry.is_file(policy) and self.origin(f"{section}.policy").kind != "command line":
                message(f"penstock: {section} runs the code of {policy} ({self._source(section)})")
            self.config.make(section)

    def _source(self, section: str) -> str:
        return self.origin(f"{section}.policy").name


def load(
    path: Path | str | None = None,
    settings: Sequence[Setting] = (),
    *,
    defaults: Sequence[Setting] = (),
    environment: Mapping[str, str] | None = None,
    policies: Collection[str] = (),
    strict: bool = False,
) -> Loaded:
    """Return the effective configuration; raise InputError for anything unknown or impossible.

    `defaults` are those of a verb, where they differ from the sections'. `policies` names the
    sections whose policies the caller will use: only these are made, and checked. `strict` refuses
    a file of another user's where a search finds one, rather than to go on without it.
    """
    environment = os.environ if environment is None else environment
    file, text = _read(path, environment, strict=strict)
    merged, origins = dict[str, Any](), dict[str, Origin]()
    for layer in (defaults, _from_file(file, text), _from_environment(environment), settings):
        converted = [setting for raw in layer for setting in _convert(raw)]
        for section in POLICY_SECTIONS:
            policy = merged.get(f"{section}.policy", getattr(Config(), section).policy)
            if any(s.key == f"{section}.policy" and s.value != policy for s in converted):
                for key in [key for key in merged if key.startswith(f"{section}.options.")]:
                    del merged[key], origins[key]
        for setting in converted:
            for key in [key for key in merged if key.startswith(f"{setting.key}.")]:
                del merged[key], origins[key]  # a whole table replaces its entries
            merged[setting.key], origins[setting.key] = setting.value, setting.origin
    loaded = Loaded(config=_build(merged), origins=origins, file=file)
    for name in section_types():
        section = getattr(loaded.config, name.replace("-", "_"))
        if isinstance(section, Section):
            with loaded.blame(*(key for key in origins if key.startswith(f"{name}."))):
                section.check()
    for section in policies:
        loaded.check_policy(section)
    return loaded


def _read(
    path: Path | str | None, environment: Mapping[str, str], *, strict: bool
) -> tuple[Path | None, str]:
    """Return the file and its text: `path`, else $PENSTOCK_CONFIG, else the first of FILES.

    A file of FILES that cannot be read is skipped, and one that belongs to a stranger: the user did
    not name it, and it may be another user's, as in /tmp or where a process keeps root's HOME.
    `strict` refuses the stranger's instead. One of the user's own that others can change is always
    refused: the user meant it.
    """
    sources = [("--config", path), (f"{PREFIX}CONFIG", environment.get(f"{PREFIX}CONFIG"))]
    for source, name in sources:
        if not name:
            continue
        try:
            if Path(name).is_file():
                return Path(name), _text(Path(name))
        except UntrustedFileError as error:
            raise InputError(f"{source}: {error}") from error
        except OSError as error:
            problem = f"{name} cannot be read: {reason(error).lower()}"
            raise InputError(f"{source}: {problem}") from error
        raise InputError(f"{source}: there is no file {str(name)!r}; check the name")
    home = environment.get("HOME", "")
    for candidate in (Path(name.replace("~", home)) for name in FILES if home or "~" not in name):
        try:
            if candidate.is_file():
                return candidate, _text(candidate, searched=True)
        except UntrustedFileError as error:
            if strict or not error.stranger:
                raise InputError(f"configuration: {error}") from error
            message(f"penstock: warning: {error}; it is passed over")
        except OSError as error:
            problem = f"{candidate} cannot be read ({reason(error).lower()})"
            message(f"penstock: warning: {problem}; it is passed over")
    return None, ""


def _text(file: Path, *, searched: bool = False) -> str:
    try:
        return trusted_files.read(file, searched=searched).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not valid TOML: {reason(error)}") from error


def section_types() -> Mapping[str, type[msgspec.Struct]]:
    """Return the sections of the file."""
    return {field.encode_name: field.type for field in msgspec.structs.fields(Config)}


def _keys(section: type[msgspec.Struct]) -> dict[str, Field]:
    return {field.key: field for field in fields(section)}


def field(key: str) -> Field:
    """Return the field of a key such as "site.nodes"."""
    section, _, name = key.partition(".")
    return _keys(section_types()[section])[name]


def _from_file(file: Path | None, text: str) -> Iterator[Setting]:
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{file} is not valid TOML: {reason(error)}") from error
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
            # A single underscore is part of a word, which TOML writes with a dash; the entries of
            # a table, such as users, are no words of ours.
            *words, last = name.removeprefix(PREFIX).lower().split("__", 2)
            words = [word.replace("_", "-") for word in words]
            last = last if len(words) == 2 else last.replace("_", "-")
            origin = Origin(kind="environment", name=name)
            yield Setting(key=".".join([*words, last]), value=text, origin=origin, text=True)


def _convert(setting: Setting) -> Iterator[Setting]:
    """Yield the setting with its value in the key's type; a table of options one by one."""
    section, _, key = setting.key.partition(".")
    source = setting.origin.name
    if section not in section_types():
        raise InputError(f"{source}: {unknown('section', section, section_types())}")
    key, dot, entry = key.partition(".")
    keys = _keys(section_types()[section])
    if key not in keys or (dot and not (entry and keys[key].is_table)):
        raise InputError(
            f"{source}: {unknown('key', setting.key, [f'{section}.{k}' for k in keys])}"
        )
    readings = _readings(setting.value) if setting.text else [setting.value]
    if entry:
        readings = [{entry: value} for value in readings]
    value = _first_valid(readings, keys[key], setting)
    if key != "options" or section not in POLICY_SECTIONS:
        value = value[entry] if entry else value
        yield Setting(key=setting.key, value=value, origin=setting.origin)
        return
    for name, item in value.items():
        full_name = f"{section}.options.{name.replace('_', '-')}"
        yield Setting(key=full_name, value=item, origin=setting.origin)


def _first_valid(readings: list[Any], field: Field, setting: Setting) -> Any:
    for value in readings:
        try:
            return field.read(value)
        except (ValueError, TypeError):  # msgspec.ValidationError and InputError included
            continue
    expected = f"a whole number, {field.description}" if field.is_integer else field.description
    if any(choice not in expected for choice in field.choices):
        expected += f": {', '.join(field.choices)}"
    if setting.key.count(".") > 1:
        expected = field.entry
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
        section, name, *entry = key.split(".", 2)
        name = name.replace("-", "_")
        table = tables.setdefault(section.replace("-", "_"), {})
        table[name] = {**table.get(name, {}), entry[0]: value} if entry else value
    kinds = {name.replace("-", "_"): kind for name, kind in section_types().items()}
    built: dict[str, Any] = {name: kinds[name](**table) for name, table in tables.items()}
    return Config(**built)
