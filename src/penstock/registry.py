"""The one table of policies: kind and name to "module:Class", imported when first used.

Third-party packages add policies through the entry points `penstock.<kind>`, for example

    [project.entry-points."penstock.sharing"]
    my-policy = "my_package.my_policy:MyPolicy"

and a policy can be named by its file: `./my_policy.py:MyPolicy`. It runs as code of the caller, so
only a file that nobody else decides is run; see `trusted_files`.
"""

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import msgspec

from penstock import trusted_files
from penstock.errors import InputError, unknown
from penstock.files import reason
from penstock.policies._support.asking import ending
from penstock.policies._support.problems import problems
from penstock.policies.base import Sharing

POLICIES: Mapping[str, Mapping[str, str]] = {
    "sharing": {
        "best-next-event": "penstock.policies.sharing.best_next_event:BestNextEvent",
        "clairvoyant-sets": "penstock.policies.sharing.clairvoyant_sets:ClairvoyantSets",
        "exclusive-fcfs": "penstock.policies.sharing.exclusive_fcfs:ExclusiveFcfs",
        "fair-finish": "penstock.policies.sharing.fair_finish:FairFinish",
        "fair-share": "penstock.policies.sharing.fair_share:FairShare",
        "greedy-com": "penstock.policies.sharing.greedy_com:GreedyCom",
        "greedy-yield": "penstock.policies.sharing.greedy_yield:GreedyYield",
        "hedged-finish": "penstock.policies.sharing.hedged_finish:HedgedFinish",
        "longest-io": "penstock.policies.sharing.longest_io:LongestIo",
        "longest-remaining": "penstock.policies.sharing.longest_remaining:LongestRemaining",
        "look-ahead-greedy-yield": (
            "penstock.policies.sharing.look_ahead_greedy_yield:LookAheadGreedyYield"
        ),
        "lowest-id": "penstock.policies.sharing.lowest_id:LowestId",
        "lowest-io-ratio": "penstock.policies.sharing.lowest_io_ratio:LowestIoRatio",
        "periodic-greedy-yield": (
            "penstock.policies.sharing.periodic_greedy_yield:PeriodicGreedyYield"
        ),
        "set-10": "penstock.policies.sharing.set_10:Set10",
        "set-fair-share": "penstock.policies.sharing.set_fair_share:SetFairShare",
        "share-priority": "penstock.policies.sharing.share_priority:SharePriority",
        "shortest-io": "penstock.policies.sharing.shortest_io:ShortestIo",
        "shortest-remaining": "penstock.policies.sharing.shortest_remaining:ShortestRemaining",
        "token-bucket": "penstock.policies.sharing.token_bucket:TokenBucket",
        "worst-stretch": "penstock.policies.sharing.worst_stretch:WorstStretch",
    },
    "allocation": {
        "best-bandwidth": "penstock.policies.allocation.best_bandwidth:BestBandwidth",
        "mckp": "penstock.policies.allocation.mckp:Mckp",
        "n-sys": "penstock.policies.allocation.n_sys:NSys",
        "one": "penstock.policies.allocation.one:One",
        "oracle": "penstock.policies.allocation.oracle:Oracle",
        "process": "penstock.policies.allocation.process:Process",
        "random": "penstock.policies.allocation.random:Random",
        "search": "penstock.policies.allocation.search:Search",
        "size": "penstock.policies.allocation.size:Size",
        "static": "penstock.policies.allocation.static:Static",
        "t-cpu": "penstock.policies.allocation.t_cpu:TCpu",
        "where-known": "penstock.policies.allocation.where_known:WhereKnown",
        "zero": "penstock.policies.allocation.zero:Zero",
    },
    "placement": {
        "exclusive": "penstock.policies.placement.exclusive:Exclusive",
        "greedy-clairvoyant": "penstock.policies.placement.greedy_clairvoyant:GreedyClairvoyant",
        "greedy-non-clairvoyant": (
            "penstock.policies.placement.greedy_non_clairvoyant:GreedyNonClairvoyant"
        ),
        "random": "penstock.policies.placement.random:Random",
        "search": "penstock.policies.allocation.search:Search",
    },
    "packing": {
        "backfill": "penstock.policies.packing.backfill:Backfill",
        "dominant-share": "penstock.policies.packing.dominant_share:DominantShare",
        "first-fit": "penstock.policies.packing.first_fit:FirstFit",
        "no-barriers": "penstock.policies.packing.no_barriers:NoBarriers",
        "pack-partition": "penstock.policies.packing.pack_partition:PackPartition",
    },
    "tuning": {
        "decaying-epsilon": "penstock.policies.tuning.decaying_epsilon:DecayingEpsilon",
        "discounted-ucb": "penstock.policies.tuning.discounted_ucb:DiscountedUcb",
        "epsilon-greedy": "penstock.policies.tuning.epsilon_greedy:EpsilonGreedy",
        "scaled-ucb1": "penstock.policies.tuning.scaled_ucb1:ScaledUcb1",
        "sliding-ucb": "penstock.policies.tuning.sliding_ucb:SlidingUcb",
        "thompson": "penstock.policies.tuning.thompson:Thompson",
        "ucb1": "penstock.policies.tuning.ucb1:Ucb1",
    },
}


OURS: Mapping[str, frozenset[str]] = {
    "sharing": frozenset({"fair-finish", "hedged-finish", "token-bucket"}),
    "allocation": frozenset({"search", "where-known"}),
    "placement": frozenset({"search"}),
    "packing": frozenset({"backfill", "dominant-share", "no-barriers"}),
    "tuning": frozenset(),
}
"""The policies that no paper defines, by kind; all others of POLICIES are published."""


def origin(kind: str, name: str) -> str:
    """Return who a policy is from: "published", "penstock", or "other" (a package, or a file)."""
    if name not in POLICIES[kind]:
        return "other"
    return "penstock" if name in OURS[kind] else "published"


def table(kind: str) -> dict[str, str]:
    """Return the policies of a kind, including those of installed packages."""
    if kind not in POLICIES:
        raise unknown("kind of policy", kind, POLICIES)
    return dict(_third_party(kind)) | dict(POLICIES[kind])


@cache
def _third_party(kind: str) -> tuple[tuple[str, str], ...]:
    """Return the policies of installed packages; cached, as the lookup takes milliseconds."""
    return tuple((e.name, e.value) for e in entry_points(group=f"penstock.{kind}"))


def is_file(name: str) -> bool:
    """Whether a policy is named by its file, which runs as code."""
    return ".py:" in name or name.endswith(".py")


def load(kind: str, name: str) -> type[Any]:
    """Return the class of the policy `name`, or of `file.py:Class`."""
    if is_file(name):
        return _from_file(name)
    policies = table(kind)
    if name not in policies:
        raise unknown(f"{kind} policy", name, policies)
    module, _, attribute = policies[name].partition(":")
    try:
        cls: type[Any] = getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as error:
        if name in POLICIES[kind]:
            raise
        raise InputError(
            f"policy {name!r} of an installed package ({policies[name]}) cannot be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error
    return cls


def policy(kind: str, name: str, options: Mapping[str, Any] | None = None) -> Any:
    """Return a policy of a kind made with `options`, its constructor's keywords."""
    instance = _construct(load(kind, name), name, dict(options or {}))
    if wrong := problems(kind, instance):
        raise InputError(f"policy {name!r}: {'; '.join(wrong)}; see penstock.policies.base")
    return instance


def sharing(name: str, options: Mapping[str, Any] | None = None) -> Sharing:
    """Return a sharing policy made with `options`."""
    instance: Sharing = policy("sharing", name, options)
    return instance


def options(cls: type[Any]) -> dict[str, Any]:
    """Return a policy's options with their defaults."""
    if cls.__init__ is object.__init__:
        return {}
    parameters = list(inspect.signature(cls).parameters.values())
    return {p.name.replace("_", "-"): p.default for p in parameters}


def _construct(cls: type[Any], name: str, arguments: dict[str, Any]) -> Any:
    valid = options(cls)
    for option in arguments:
        if option.replace("_", "-") not in valid:
            raise (
                unknown(f"option of {name}", option, valid)
                if valid
                else InputError(f"policy {name!r} has no options, but {option!r} was given")
            )
    try:
        return cls(**{o.replace("-", "_"): _typed(cls, name, o, v) for o, v in arguments.items()})
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"policy {name!r} cannot be constructed: {error}") from error
    except SystemExit as error:
        raise ending(f"the constructor of policy {name!r}", error) from error


def _typed(cls: type[Any], name: str, option: str, value: Any) -> Any:
    """Return an option's value converted to its annotated type, if that is plain data."""
    kind = inspect.signature(cls).parameters[option.replace("-", "_")].annotation
    if kind is inspect.Parameter.empty or isinstance(kind, str):
        return value
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InputError(
            f"option {option!r} of {name} is {value!r}: {str(error).replace('`', '').lower()}"
        ) from error
    except TypeError:
        return value


def _from_file(name: str) -> type[Any]:
    file, _, attribute = (name, "", "") if name.endswith(".py") else name.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise InputError(f"policy file {file!r} does not exist")
    try:
        source = trusted_files.read(path)
    except OSError as error:
        raise InputError(f"policy file {file!r} cannot be read: {reason(error)}") from error
    except trusted_files.UntrustedFileError as error:
        raise InputError(f"policy file {error}") from error
    spec = importlib.util.spec_from_file_location(f"penstock.policy_file.{path.stem}", path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses, and readers of the module's docstring, look for it here.
    sys.modules[spec.name] = module
    try:
        # What was read is run: a loader would take a .pyc that anybody may have put beside it.
        exec(compile(source, str(path), "exec", dont_inherit=True), vars(module))
    except (Exception, SystemExit) as error:
        raise InputError(
            f"policy file {file!r} cannot be loaded: {_reason(path, error)}"
        ) from error
    classes = {
        each: cls
        for each, cls in vars(module).items()
        if isinstance(cls, type) and cls.__module__ == spec.name and not each.startswith("_")
    }
    if not attribute:
        raise InputError(
            f"which class? {file} has {', '.join(classes)}; give {file}:{next(iter(classes))}"
            if classes
            else f"policy file {file!r} defines no class"
        )
    if attribute not in classes:
        if not classes:
            raise InputError(f"policy file {file!r} has no class {attribute!r}: it has no class")
        raise unknown(f"class of {file}", attribute, classes)
    return classes[attribute]


def _reason(path: Path, error: BaseException) -> str:
    """Return an error with the line of the file that it comes from."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}, {type(error).__name__}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    return (f"line {lines[-1]}, " if lines else "") + f"{type(error).__name__}: {error}"
