"""The one configuration of simulation and live control: TOML file, environment, command line.

`loading` and `sections` are imported when a name of theirs is first used: they bring NumPy, which
the processes of a site that only need the description of a section do not.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.config.loading import Loaded, Origin, Setting, field, load, section_types
    from penstock.config.section import values
    from penstock.config.sections import OWN, POLICY_SECTIONS, Config, window

__all__ = [
    "OWN",
    "POLICY_SECTIONS",
    "Config",
    "Loaded",
    "Origin",
    "Setting",
    "field",
    "load",
    "section_types",
    "values",
    "window",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("penstock.config.loading"), name)
