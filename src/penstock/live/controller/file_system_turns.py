"""The file systems of a site as its turns are taken on them, between agents, phases and people."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from penstock.identities import FileSystemId
from penstock.live.controller.turn_state import Phase, TurnState
from penstock.live.protocol import messages
from penstock.model import FileSystem, JobId, ResourceId


class FileSystemTurns:
    """With turns per I/O node, phases are on no file system that matters: nothing is said then."""

    def __init__(self, declared: Sequence[FileSystem], *, by_io_node: bool) -> None:
        self.ids = [FileSystemId(k) for k in range(max(len(declared), 1))]
        self._names = [each.name for each in declared] or ["default"]
        self._by_io_node = by_io_node

    @property
    def are_several(self) -> bool:
        """Whether phases take turns on more than one file system."""
        return len(self.ids) > 1 and not self._by_io_node

    def used(self, message: messages.PhaseBegan) -> frozenset[FileSystemId]:
        """Return what a phase uses: of an agent that does not say, all file systems."""
        named = frozenset(message.file_systems or ()) & frozenset(self.ids)
        return named or frozenset(self.ids)

    def named(self, resources: Iterable[ResourceId]) -> list[FileSystemId] | None:
        """Return a phase's resources as file systems; None: turns are not taken on several."""
        return [FileSystemId(each) for each in sorted(resources)] if self.are_several else None

    def of(self, phase: Phase | None) -> tuple[list[str], list[str]]:
        """Return the file systems that a phase uses, and those on which it has no turn."""
        if phase is None or self._by_io_node:
            return [], []
        waits = [each for each in phase.resources if waits_on(phase, each)]
        return [self._names[each] for each in phase.resources], [self._names[r] for r in waits]

    def phases_on(
        self, number: int, states: Mapping[JobId, TurnState]
    ) -> Iterator[tuple[JobId, Phase]]:
        """Yield the phases that use a file system."""
        for id, state in states.items():
            if state.phase is not None and not self._by_io_node and number in state.phase.resources:
                yield id, state.phase


def waits_on(phase: Phase, resource: ResourceId) -> bool:
    """Tell whether a phase waits for its turn on one of its resources."""
    return resource not in phase.turns and not phase.released
