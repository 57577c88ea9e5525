"""What a site knows of applications, for the verbs: from its controller, or from its store."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from penstock.errors import InputError
from penstock.learn.imported import ImportedApplication
from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.application_record import ApplicationRecord
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.store import Store, StoreError, WriteBehind
from penstock.live.store.applications import forget, import_knowledge


class Knowledge(Protocol):
    """What is known, as far as the caller may see and change it."""

    def records(self, user: str | None) -> list[ApplicationRecord]:
        """Return the applications of a user, or of all."""

    def add(self, applications: list[ImportedApplication]) -> None:
        """Add what a file says of applications: of all, or of none."""

    def forget(self, message: messages.ForgetApplications) -> int:
        """Remove what is known of a user's applications; return of how many."""


class _OfController:
    def __init__(self, connection: ControlConnection) -> None:
        self._connection = connection

    def records(self, user: str | None) -> list[ApplicationRecord]:
        records: list[ApplicationRecord] = []
        first: int | None = 0
        while first is not None:
            request = messages.GetApplications(first=first, user=user)
            answer = self._connection.ask(request, messages.Applications)
            records += answer.applications
            first = answer.next
        return records

    def add(self, applications: list[ImportedApplication]) -> None:
        self._connection.ask(messages.ImportKnowledge(applications=applications), messages.Done)

    def forget(self, message: messages.ForgetApplications) -> int:
        return self._connection.ask(message, messages.Forgotten).applications


class _OfStore:
    def __init__(self, store: WriteBehind) -> None:
        self._store = store

    def records(self, user: str | None) -> list[ApplicationRecord]:
        families = self._store.families
        users = [one for one in families.users() if user in (None, one)]
        return [families.record(family) for one in users for family in families.of(one)]

    def add(self, applications: list[ImportedApplication]) -> None:
        import_knowledge(self._store, applications, time.time())

    def forget(self, message: messages.ForgetApplications) -> int:
        return forget(self._store, message)


@contextmanager
def knowledge(
    state: StateDirectory, store: str | None = None, *, create: bool = False
) -> Iterator[Knowledge]:
    """Open what the site in a state directory knows; `store` is its database, as 'up' has it.

    Without a controller the store is opened itself; `create` makes one if it is missing.
    """
    if state.is_up(allow_root=True):
        with launcher.connected(state) as connection:
            yield _OfController(connection)
        return
    if create:
        state.create()
    elif store is None and not state.store.exists():
        raise InputError(f"nothing is known in {state.folder}: no controller has run there")
    try:
        keeper = WriteBehind(Store(store or f"sqlite:///{state.store}"))
    except StoreError as error:
        raise InputError(f"the store cannot be read: {error}") from error
    with keeper:
        yield _OfStore(keeper)
    if keeper.waiting:
        raise launcher.LaunchError(f"the store cannot be written: {keeper.failing}")
