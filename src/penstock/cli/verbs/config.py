"""penstock config: what is in force, and where it comes from."""

import inspect
import json
from collections.abc import Iterator
from datetime import date, datetime
from datetime import time as time_of_day
from pathlib import Path
from typing import Any

import click
import msgspec

from penstock import registry
from penstock.cli.common import options
from penstock.cli.common.output import emit_json
from penstock.config import DECIDED, FILES, OWN, Loaded, Origin, describe, sections


@click.group(no_args_is_help=False)
def config() -> None:
    """Show the configuration that all verbs share."""


@config.command(short_help="Print what is in force.")
@options.configured
@options.as_json
def show(*, config_file: Path | None, settings: tuple[str, ...], as_json: bool) -> None:
    """Print what is in force and where each value comes from, as a file to start from.

    \b
    Examples:
      penstock config show
      penstock config show > site.toml
      PENSTOCK_SITE__NODES=96 penstock config show --set sharing.policy=fair-share --json

    \b
    What comes later wins:
      1. defaults
      2. the first file there is: --config FILE, $PENSTOCK_CONFIG, ./penstock.toml,
         ~/.config/penstock/penstock.toml, /etc/penstock/penstock.toml
      3. the environment: PENSTOCK_SITE__NODES=96 is nodes of [site]
      4. the command line: --set site.nodes=96, and flags such as --policy
    """
    loaded = options.load(config_file, settings, {})
    if as_json:
        values = msgspec.to_builtins(loaded.config)
        keys = [f"{s}.{k}" for s, table in values.items() for k in table if k != "options"]
        for section in DECIDED:
            values[section]["options"] = dict(_policy_options(loaded, section))
            keys += [f"{section}.options.{key}" for key in values[section]["options"]]
        origins = {key: str(loaded.origins.get(key, Origin())) for key in keys}
        file = None if loaded.file is None else str(loaded.file)
        emit_json({"file": file, "values": values, "origins": origins})
    else:
        click.echo("\n".join(_toml(loaded)))


def _toml(loaded: Loaded) -> Iterator[str]:
    place = (
        f"no file: none of {', '.join(FILES)}" if loaded.file is None else f"file: {loaded.file}"
    )
    yield "# What is in force, and where it comes from; 'penstock config show --help' says more."
    yield f"# {place}"
    for section, kind in sections().items():
        yield ""
        yield f"[{section}]"
        values = msgspec.to_builtins(getattr(loaded.config, section))
        for key, value in values.items():
            if key == "options":
                continue
            yield f"# {describe(kind, key)}"
            yield _line(key, value, loaded.origins.get(f"{section}.{key}", Origin()))
        chosen = list(_policy_options(loaded, section)) if section in DECIDED else []
        if chosen:
            yield ""
            yield f"[{section}.options]"
            for key, value in chosen:
                yield _line(key, value, loaded.origins.get(f"{section}.options.{key}", Origin()))


def _policy_options(loaded: Loaded, section: str) -> Iterator[tuple[str, Any]]:
    """Yield the options of a section's policy, those at their defaults included."""
    chosen = getattr(loaded.config, section)
    if chosen.policy == OWN:
        return
    defaults = registry.options(registry.load(section, chosen.policy))
    for key, default in defaults.items():
        value = chosen.options.get(key, default)
        if value is not inspect.Parameter.empty:
            yield key, value


def _line(key: str, value: Any, origin: Origin) -> str:
    text = _value(value)
    if text is None:
        return f"# {key} is not set  # {origin}"
    return f"{_key(key)} = {text}  # {origin}"


def _value(value: Any) -> str | None:
    """Return a value in TOML, or None for what TOML cannot say."""
    text: str | None = None
    match value:
        case bool():
            text = str(value).lower()
        case int() | float():
            text = repr(value)
        case str():
            # JSON's strings are TOML's, but for the one control character that JSON lets stand.
            text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case datetime() | date() | time_of_day():
            text = value.isoformat()
        case list() | tuple():
            items = [_value(item) for item in value]
            text = None if None in items else f"[{', '.join(map(str, items))}]"
        case dict():
            items = [_value(item) for item in value.values()]
            pairs = (f"{_key(key)} = {item}" for key, item in zip(value, items, strict=True))
            text = None if None in items else f"{{{', '.join(pairs)}}}"
    return text


def _key(key: str) -> str:
    bare = key.replace("-", "").replace("_", "")
    return key if bare.isascii() and bare.isalnum() else json.dumps(key, ensure_ascii=False)
