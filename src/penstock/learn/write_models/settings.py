"""What to type for an advised write: stripes, MPI-IO hints, parameters of ADIOS2.

Hints are ROMIO's, which MPICH, Cray MPICH, Intel MPI and (as a component) Open MPI have. They are
for one file that processes share: collective buffering. A file each is nothing that MPI-IO can
aggregate; ADIOS2's file engines do, into a subfile an aggregator. What these do with their settings
is what was predicted (`attainable`); Cray's own variable cannot hold a cb_config_list, and without
one Cray places aggregators by rules of its own, so that it gets stripes alone.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.learn.write_models.advice import Advice
from penstock.learn.write_models.attainable import config_list, on_lustre
from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.parameters import stripe, width
from penstock.model.write import Write

MIB = 2**20
BUFFER = 16 * MIB
"""ROMIO's own cb_buffer_size, which is kept to whole stripes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Commands in their order, hints by name, and the ADIOS2 parameter that stands for them."""

    commands: tuple[str, ...]
    hints: dict[str, str]
    adios2: dict[str, str]

    def hints_file(self) -> str:
        """Return the hints as ROMIO reads them from the file that ROMIO_HINTS names."""
        return "".join(f"{name} {value}\n" for name, value in self.hints.items())


def settings(
    machine: Machine,
    advice: Advice,
    path: str,
    *,
    hints_file: Path | None = None,
    hosts: Sequence[str] = (),
) -> Settings:
    """Return what makes a program write as advised, its output being at a path or below it.

    `hints_file` is where the hints will be, if anywhere; `hosts` are those that were advised with.
    """
    if not advice.worth_it:
        return Settings(commands=(), hints={}, adios2={})
    now, best = advice.now.write, advice.best.write
    commands: list[str] = []
    hints: dict[str, str] = {}
    adios2: dict[str, str] = {}
    restriped = (best.stripe_count, best.stripe_size) != (now.stripe_count, now.stripe_size)
    if restriped and machine.striping.set_by:
        if not best.shared:  # files take the stripes of their directory, which has to be there
            commands.append(f"mkdir -p {shlex.quote(path)}")
        commands.append(_set_stripes(machine, best, path))
    if best.bursts != now.bursts and best.shared:
        hints |= _collective(machine, now, best, hosts)
    elif best.bursts != now.bursts:
        adios2["NumAggregators"] = f"{best.bursts}"
    if restriped and best.shared:
        hints |= {
            "striping_factor": f"{width(machine, best)}",
            "striping_unit": f"{int(stripe(machine, best))}",
        }
    if hints and hints_file is not None:
        commands.append(f"export ROMIO_HINTS={shlex.quote(str(hints_file.absolute()))}")
    if hints and "cb_nodes" not in hints:
        cray = ":".join(f"{name}={value}" for name, value in hints.items())
        commands.append(f"export MPICH_MPIIO_HINTS='*:{cray}'")
    return Settings(commands=tuple(commands), hints=hints, adios2=adios2)


def _collective(machine: Machine, now: Write, best: Write, hosts: Sequence[str]) -> dict[str, str]:
    """Return the hints that make ROMIO gather data in the aggregators that were advised."""
    unit, count = int(stripe(machine, best)), width(machine, best)
    hints = {
        "romio_cb_write": "enable",
        "cb_nodes": f"{best.bursts}",
        "cb_config_list": config_list(now, best, hosts),
        "cb_buffer_size": f"{unit * max(1, BUFFER // unit)}",
    }
    if on_lustre(machine) and best.bursts > count:
        hints["romio_lustre_co_ratio"] = f"{best.bursts // count}"  # else one writes to a target
    return hints


def _set_stripes(machine: Machine, write: Write, path: str) -> str:
    words = {
        "{count}": f"{width(machine, write)}",
        "{size}": size_word(stripe(machine, write)),
        "{path}": shlex.quote(path),
    }
    command = machine.striping.set_by
    for place, word in words.items():
        command = command.replace(place, word)
    return command


def size_word(size: float) -> str:
    """Return bytes as file systems' commands take them: 4M, or a plain number."""
    return f"{int(size // MIB)}M" if size % MIB == 0 else f"{int(size)}"
