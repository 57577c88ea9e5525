"""What a run did to its files, as a log of counters tells it, and what follows from that."""

from penstock.learn.profiles.profile import (
    BasePattern,
    Heat,
    IoPhase,
    Layer,
    Profile,
    phases_of,
    write_of,
)

__all__ = ["BasePattern", "Heat", "IoPhase", "Layer", "Profile", "phases_of", "write_of"]
