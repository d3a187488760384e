"""The credentials of a cluster: every client of the cluster's session signs with them.

Credentials come from the environment, or from the store that `console.services.clusters` keeps.
Other processes of the console notice a change within LOAD_EVERY_MS.
"""

from contextlib import suppress
from threading import Lock
from typing import Protocol

from core_broker.client import AclRpcHook, Credentials
from core_broker.remoting.command import RemotingCommand

__all__ = ["CredentialStore", "Credentials", "Signing"]

#: Minimum time between two reads of the store, milliseconds.
LOAD_EVERY_MS = 5_000


class CredentialStore(Protocol):
    """Storage of credentials; implemented by `console.services.clusters.credentials`."""

    def credentials(self, cluster: str) -> Credentials | None:
        """Return the credentials of a cluster; None: requests are not signed.

        Raises LookupError when the store does not answer.
        """


class Signing:
    """An RPC hook that signs with the current credentials of one cluster. Thread-safe."""

    def __init__(self, fixed: Credentials | None = None) -> None:
        #: Credentials of the environment; they take precedence over the store.
        self.fixed = fixed
        self._lock = Lock()
        self._load_at_ms = 0
        self._current = fixed
        self._hook: AclRpcHook | None = None if fixed is None else fixed.hook()
        #: Number of changes; answers to another account are not reused.
        self.generation = 0

    @property
    def current(self) -> Credentials | None:
        return self._current

    def load_due(self, now_ms: int) -> bool:
        return self.fixed is None and now_ms >= self._load_at_ms

    def load(self, store: CredentialStore, cluster: str, now_ms: int) -> None:
        """Read the store when due. Callers run in a thread: the store is a database."""
        with self._lock:
            if not self.load_due(now_ms):
                return
            self._load_at_ms = now_ms + LOAD_EVERY_MS
        with suppress(LookupError):  # the known credentials stay in use
            self.use(store.credentials(cluster))

    def use(self, credentials: Credentials | None) -> None:
        """Sign the following requests with these credentials; None: do not sign."""
        with self._lock:
            if credentials != self._current:
                self._current = credentials
                self._hook = None if credentials is None else credentials.hook()
                self.generation += 1

    def before_request(self, addr: str, command: RemotingCommand) -> None:
        """Sign a request before a client sends it."""
        hook = self._hook
        if hook is not None:
            hook.before_request(addr, command)

    def after_response(
        self, addr: str, command: RemotingCommand, response: RemotingCommand
    ) -> None:
        """Answers are not signed."""
