"""What people ask of applications on one connection: to see, to import, to forget."""

import logging
from collections.abc import Callable

from penstock.live.controller.peer import Peer
from penstock.live.protocol import messages
from penstock.live.store import Family, WriteBehind
from penstock.live.store.applications import forget, import_knowledge

PAGE = 20
"""Applications in one answer: the controller does nothing else meanwhile."""
REQUESTS = messages.GetApplications | messages.ImportKnowledge | messages.ForgetApplications
log = logging.getLogger("penstock.controller")


class ApplicationRequests:
    """Answers a peer; users see and change what is known of their own applications."""

    def __init__(
        self, store: WriteBehind, peer: Peer, *, io_nodes: int, clock: Callable[[], float]
    ) -> None:
        """A site has this number of I/O nodes; `clock` returns seconds since the epoch."""
        self._store, self._peer = store, peer
        self._io_nodes, self._clock = io_nodes, clock
        self._listed: list[Family] = []

    def answer(self, message: REQUESTS) -> messages.Message:
        """Return the answer; RefusedError: the peer may not do this."""
        match message:
            case messages.GetApplications():
                return self._list(message)
            case messages.ImportKnowledge(applications=applications):
                for user in {one.user for one in applications}:
                    self._peer.check_own(user, "import curves")
                import_knowledge(self._store, applications, self._clock(), self._io_nodes)
                log.info("imported what a file says of %d applications", len(applications))
                return messages.Done()
            case messages.ForgetApplications(user=user):
                self._peer.check_own(user, "forget applications")
                count = forget(self._store, message)
                log.info("forgot %d applications of user %s", count, user)
                return messages.Forgotten(applications=count)

    def _list(self, message: messages.GetApplications) -> messages.Applications:
        families = self._store.families
        if message.first == 0:
            users = [user for user in families.users() if message.user in (None, user)]
            readable = filter(self._peer.may_read, users)
            self._listed = [family for user in readable for family in families.of(user)]
        following = message.first + PAGE
        part = self._listed[message.first : following]
        return messages.Applications(
            applications=[families.record(family) for family in part if family in families],
            next=following if following < len(self._listed) else None,
        )
