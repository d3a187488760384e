"""The reasons why a slave refuses the log of its master."""

from core_broker.errors import GantryError


class ReplicationRefused(GantryError):
    """The slave closes the connection to its master; an operator must act."""


class DamagedStream(ReplicationRefused):
    """The master's log has bytes that are no record."""

    def __init__(self, offset: int, reason: str) -> None:
        self.offset = offset
        super().__init__(f"The commit log of the master is unusable at offset {offset}: {reason}.")


class DivergedLog(ReplicationRefused):
    """The logs of master and slave are not copies of each other."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The commit logs of master and slave have diverged: {reason}."
            " To begin again, stop this broker, move its store folder away, and start it."
        )
