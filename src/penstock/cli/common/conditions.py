"""What a comparison simulated: how well policies knew jobs, and what of a live site."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from penstock.cli.common.workload_files import as_live, knowledge
from penstock.config import Loaded
from penstock.sim.as_live import AsLive

LEARNED, LIVE = "--knowledge learned", "--as-live"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The conditions of a comparison; None where they do not apply to the kind of policies."""

    knowledge: str | None
    """As `simulation.knowledge` has it: "exact", "learned", "noisy:0.5"."""
    seed: int | None
    """The seed of the noise, where knowledge is noisy."""
    as_live: AsLive | None
    ideal: bool
    """Nothing of a live site was simulated, though its policies share one."""

    @classmethod
    def of(cls, loaded: Loaded, kind: str) -> "Conditions":
        """Return the conditions under which policies of a kind are compared."""
        if kind == "packing":
            return cls(knowledge=None, seed=None, as_live=None, ideal=False)
        known = knowledge(loaded)
        live = as_live(loaded) if kind == "sharing" else None
        return cls(
            knowledge=loaded.config.simulation.knowledge,
            seed=known.seed if known.kind == "noisy" else None,
            as_live=live,
            ideal=kind == "sharing" and live is None,
        )

    def as_json(self) -> dict[str, Any]:
        """Return what `--json` prints of them."""
        live = None if self.as_live is None else asdict(self.as_live)
        return {"knowledge": self.knowledge, "noise_seed": self.seed, "as_live": live}

    @property
    def text(self) -> str:
        """What was simulated, in a line; "" of packings, which plan by what the file says."""
        if self.knowledge is None:
            return ""
        seed = "" if self.seed is None else f", seed {self.seed}"
        where = ", an ideal site" if self.ideal else ""
        live = "" if self.as_live is None else f"; {explain_as_live(asdict(self.as_live))}"
        return f"simulated: knowledge {self.knowledge}{seed}{where}{live}"

    @property
    def brief(self) -> str:
        """The same in the corner of a figure."""
        if self.knowledge is None:
            return "simulated"
        live = ", as live" if self.as_live is not None else ""
        return f"simulated, knowledge {self.knowledge}{live}"

    def caution(self, *, needs: bool) -> str:
        """Say with which options a policy is to be compared again before it runs live.

        `needs`: it must know something of jobs, so that exact knowledge flatters it.
        """
        options = [
            *([LIVE] if self.ideal else []),
            *([LEARNED] if needs and self.knowledge == "exact" else []),
        ]
        if not options:
            return ""
        return f"Chosen for an ideal site: before you take it live, add {' '.join(options)}."


def explain_as_live(live: Mapping[str, Any]) -> str:
    """Say what of a live site was simulated; `live` has the fields of AsLive."""
    fair = "turns alternate between users" if live["fair_users"] else "users are not told apart"
    return (
        f"as live: no phase waits longer than {live['max_wait']:g} s, {fair}, ends of phases are "
        f"seen after {live['shortest_gap']:g} to {live['longest_gap']:g} s; simulated by the "
        "reference simulator, which is slower"
    )
