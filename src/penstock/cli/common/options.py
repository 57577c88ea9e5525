"""Options of verbs: the flags that set the configuration, and options as one typed object."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import click

from penstock import config
from penstock.config.section import Field
from penstock.errors import InputError
from penstock.io_node_settings import DEFAULTS

F = TypeVar("F", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)
METRICS: Mapping[str, str] = {
    "--window": "simulation.window",
    "--knowledge": "simulation.knowledge",
    "--seed": "simulation.seed",
    "--as-live/--no-as-live": "simulation.as-live",
}
"""Flags of verbs that simulate, and the keys they set."""
RESOURCES: Mapping[str, str] = {
    "--allocation": "allocation.policy",
    "--placement": "placement.policy",
    "--remap-delay": "allocation.remap-delay",
}
"""Flags of verbs that simulate how resources are allocated."""
SITE: Mapping[str, str] = {"--io-nodes": "site.resources", "--nodes": "site.nodes"}
"""Flags of verbs that divide a site among jobs."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Adds --config, --set and flags that set keys; the verb gets the result as `loaded`."""

    flags: Mapping[str, str] = field(default_factory=dict)
    """The key that each flag sets: its help and type are the key's."""
    _: KW_ONLY
    policies: Collection[str] = ()
    """The sections whose policies the verb uses."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Defaults of the verb, where they differ from the sections'."""
    default_texts: Mapping[str, str] = field(default_factory=dict)
    """Defaults in words, where they depend on other input."""
    options_of: str | None = None
    """The section whose policy gets the values of --option."""
    lists: Collection[str] = ()
    """Sections whose flag may list several policies, A,B,...: the verb gets these as `several`."""
    only: str | None = None
    """The section that the verb uses, if it is a single one: --set takes no keys of others."""
    strict: bool = False
    """Whether a stranger's file that a search finds is an error: what is started would differ."""

    def __call__(self, command: F) -> F:
        """Add the options to a verb."""

        @wraps(command)
        def run(**arguments: Any) -> Any:
            loaded = self.load(arguments)
            return command(loaded=loaded, **arguments)

        texts = {**self.defaults, **self.default_texts}
        options = [flag_of_key(flag, key, texts) for flag, key in self.flags.items()]
        options += [_POLICY_OPTION] if self.options_of is not None else []
        for option in reversed([*options, _CONFIG, _set_option(self.only)]):
            run = option(run)
        return run  # type: ignore[return-value]

    def load(self, arguments: dict[str, Any]) -> "config.Loaded":
        """Take the configuration's options out of the arguments, and load it."""
        if self.lists:
            arguments["several"] = self._several(arguments)
        settings = [config.Setting.parse(text) for text in arguments.pop("settings")]
        for setting in settings:
            if self.only is not None and not setting.key.startswith(f"{self.only}."):
                raise InputError(f"--set {setting.key}: give keys of [{self.only}] only")
        settings += [
            _setting(flag, key, value)
            for flag, key in self.flags.items()
            if (value := arguments.pop(_parameter(key))) is not None
        ]
        if self.options_of is not None:
            settings += [_option(self.options_of, t) for t in arguments.pop("policy_options")]
        file, origin = arguments.pop("config_file"), config.Origin()
        defaults = [
            config.Setting(key=key, value=value, origin=origin)
            for key, value in self.defaults.items()
        ]
        return config.load(
            file, settings, defaults=defaults, policies=self.policies, strict=self.strict
        )

    def _several(self, arguments: dict[str, Any]) -> dict[str, list[str]]:
        """Take the lists out of the arguments; a single policy stays a setting."""
        several = {}
        for flag, key in self.flags.items():
            section, text = key.partition(".")[0], arguments[_parameter(key)]
            if key == f"{section}.policy" and section in self.lists and "," in (text or ""):
                several[section] = policy_names(flag, text)
                arguments[_parameter(key)] = None
        return several


def policy_names(flag: str, text: str) -> list[str]:
    """Return the policies of a list A,B,...; InputError for one that is named twice."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InputError(f"{flag} {text!r} has an empty name; give A,B,...")
    if len(set(names)) < len(names):
        raise InputError(f"{flag} {text!r} names a policy twice; name each once")
    return names


_CONFIG = click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=PATH,
    help="Read this configuration file; 'penstock config show --help' lists the default places.",
)
_POLICY_OPTION = click.option(
    "--option",
    "policy_options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set an option of the policy; 'penstock policies NAME' lists them. Repeatable.",
)


def _set_option(section: str | None) -> Callable[[F], F]:
    example = "io-node.quantum='1 MiB'" if section == "io-node" else "site.bandwidth='2 GiB/s'"
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help=f"Set a key of the configuration: --set {example}. Repeatable.",
    )


def flag_of_key(flag: str, key: str, defaults: Mapping[str, str]) -> Callable[[F], F]:
    """Return the option that sets a key of the configuration."""
    described = config.field(key)
    default = described.default
    if key.startswith("io-node."):
        default = getattr(DEFAULTS, described.attribute)
    default = defaults.get(key, default)
    return flag_of_field(flag, described, _parameter(key), key=key, default=default)


def flag_of_field(
    flag: str, described: Field, parameter: str, *, key: str, default: Any
) -> Callable[[F], F]:
    """Return the option whose help and type are those of a field."""
    text, choices = described.description, described.choices
    show = described.extra.get("show", _text)
    usual = "" if default in (None, ()) else f"; default: {show(default)}"
    return click.option(
        flag,
        parameter,
        default=None,
        metavar=described.extra.get("metavar"),
        type=click.Choice(choices) if choices else None,
        help=f"{text[0].upper()}{text[1:]}.  [{key}{usual}]",
    )


def _parameter(key: str) -> str:
    return f"key_{key.replace('.', '_').replace('-', '_')}"


def _setting(flag: str, key: str, value: Any) -> "config.Setting":
    """Return what a flag sets; a list is written as `a,b`, and `--no-direct` is a name too."""
    name = flag.split("/")[1 if value is False and "/" in flag else 0]
    if get_origin(get_args(config.field(key).type)[0]) is tuple:
        return config.Setting.flag(name, key, [part.strip() for part in value.split(",")])
    return config.Setting.flag(name, key, _text(value))


def _text(value: Any) -> str:
    """Return a value as the command line has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _option(section: str, text: str) -> "config.Setting":
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InputError(f"--option {text!r} is not of the form NAME=VALUE")
    return config.Setting.flag("--option", f"{section}.options.{name.strip()}", value.strip())


def option(*names: str, **settings: Any) -> Callable[[str], Callable[[F], F]]:
    """Describe an option in the annotation of a field; see `typed`."""
    return lambda name: click.option(*names, name, **settings)


def argument(**settings: Any) -> Callable[[str], Callable[[F], F]]:
    """Describe an argument in the annotation of a field; see `typed`."""
    return lambda name: click.argument(name, **settings)


seed = option(
    "--seed",
    metavar="N",
    type=int,
    default=1,
    show_default=True,
    help="The seed of random numbers.",
)
order_seed = option(
    "--seed", type=int, default=1, show_default=True, help="Seed of the order of runs."
)


def typed(kind: type[Any]) -> Callable[[F], F]:
    """Add the options that a dataclass's annotations describe; the verb gets one as `options`.

    A field such as `depth: Annotated[int, option("--depth", type=int, help=...)]` is an option.
    """
    hints = get_type_hints(kind, include_extras=True)
    names = [field.name for field in fields(kind)]

    def decorate(command: F) -> F:
        @wraps(command)
        def run(**arguments: Any) -> Any:
            options = kind(**{name: arguments.pop(name) for name in names})
            return command(options=options, **arguments)

        for name in reversed(names):
            run = hints[name].__metadata__[0](name)(run)
        return run  # type: ignore[return-value]

    return decorate
