"""penstock config: the effective configuration, and the origin of each value."""

import inspect
import json
from collections.abc import Iterator
from datetime import date, datetime
from datetime import time as time_of_day
from typing import Any

import click
import msgspec

from penstock import registry
from penstock.cli.common.options import Configuration
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.common.terminal import echo
from penstock.cli.common.workload_files import knowledge
from penstock.config import OWN, POLICY_SECTIONS, Loaded, Origin, section_types, values
from penstock.config.loading import FILES
from penstock.config.section import fields


@click.group(no_args_is_help=False)
def config() -> None:
    """Show the configuration that all verbs share."""


@config.command(short_help="Print the effective configuration.")
@Configuration(policies=POLICY_SECTIONS)
@json_option
def show(*, loaded: Loaded, as_json: bool) -> None:
    """Print every key with its effective value and origin, as a file to start from.

    \b
    Examples:
      penstock config show
      penstock config show > site.toml
      PENSTOCK_SITE__NODES=96 penstock config show --set sharing.policy=fair-share --json

    \b
    Later sources win:
      1. defaults
      2. the first of these files that exists: --config FILE, $PENSTOCK_CONFIG, ./penstock.toml,
         ~/.config/penstock/penstock.toml, /etc/penstock/penstock.toml
      3. the environment: PENSTOCK_SITE__NODES=96 is nodes of [site]
      4. the command line: --set site.nodes=96, and flags such as --policy

    All policies are loaded, so an error in any of them is reported here. Other verbs load only the
    policies that they use.
    """
    knowledge(loaded)
    if as_json:
        tables = {name: values(section) for name, section in _sections(loaded)}
        keys = [f"{s}.{k}" for s, table in tables.items() for k in table if k != "options"]
        for section in POLICY_SECTIONS:
            tables[section]["options"] = dict(_policy_options(loaded, section))
            keys += [f"{section}.options.{key}" for key in tables[section]["options"]]
        origins = {key: str(loaded.origin(key)) for key in keys}
        file = None if loaded.file is None else str(loaded.file)
        emit_json({"file": file, "values": tables, "origins": origins})
    else:
        echo("\n".join(_toml(loaded)))


def _sections(loaded: Loaded) -> Iterator[tuple[str, msgspec.Struct]]:
    for name in section_types():
        yield name, getattr(loaded.config, name.replace("-", "_"))


def _toml(loaded: Loaded) -> Iterator[str]:
    source = (
        f"no file: none of {', '.join(FILES)}" if loaded.file is None else f"file: {loaded.file}"
    )
    yield "# The effective configuration, with origins; see 'penstock config show --help'."
    yield f"# {source}"
    for name, section in _sections(loaded):
        yield ""
        yield f"[{name}]"
        for field in fields(type(section)):
            if field.key != "options":
                value = msgspec.to_builtins(getattr(section, field.attribute))
                yield f"# {field.description}"
                yield _line(field.key, value, loaded.origin(f"{name}.{field.key}"))
        options = list(_policy_options(loaded, name)) if name in POLICY_SECTIONS else []
        if options:
            yield ""
            yield f"[{name}.options]"
            for key, value in options:
                yield _line(key, value, loaded.origin(f"{name}.options.{key}"))


def _policy_options(loaded: Loaded, section: str) -> Iterator[tuple[str, Any]]:
    """Yield the options of a section's policy, including defaults."""
    configured = getattr(loaded.config, section)
    if configured.policy == OWN:
        return
    defaults = registry.options(registry.load(section, configured.policy))
    for key, default in defaults.items():
        value = configured.options.get(key, default)
        if value is not inspect.Parameter.empty:
            yield key, value


def _line(key: str, value: Any, origin: Origin) -> str:
    text = _value(value)
    if text is None:
        return f"# {key} is not set  # {origin}"
    return f"{_key(key)} = {text}  # {origin}"


def _value(value: Any) -> str | None:
    """Return a value in TOML, or None if TOML has no notation for it."""
    text: str | None = None
    match value:
        case bool():
            text = str(value).lower()
        case int() | float():
            text = repr(value)
        case str():
            # A JSON string is a TOML string, except for DEL, which TOML wants escaped.
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
