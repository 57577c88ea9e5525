def names() -> list[str]: ...

class Scheduler:
    def __init__(
        self,
        scheduler: str,
        *,
        window: int = ...,
        quantum: int = ...,
        aggregation: int = ...,
        servers: int = ...,
        io_node: int = ...,
    ) -> None: ...
    def add(
        self,
        id: int,
        arrived: int,
        file: int,
        kind: str,
        offset: int,
        bytes: int,
        server: int = 0,
        group: int = 0,
    ) -> None: ...
    def take(self, now: int) -> list[int]: ...
    def ready_at(self, now: int) -> int | None: ...
    def drain(self) -> list[int]: ...
    def weigh(self, group: int, weight: float) -> None: ...
    def __len__(self) -> int: ...
    @property
    def groups(self) -> int: ...
