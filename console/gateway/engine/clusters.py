"""The entry point of the gateway: clusters by name, for threads and for other event loops."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import TimeoutError as WaitedTooLong
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

from channels.db import database_sync_to_async
from django.conf import settings

from console.gateway.engine.answers import Answer, now_ms
from console.gateway.engine.errors import ReadOnly, UnknownCluster
from console.gateway.engine.known_brokers import BrokerMemory, BrokerRef, KnownBrokers
from console.gateway.engine.loop import GatewayLoop
from console.gateway.engine.questions import Command, Question
from console.gateway.engine.session import ClusterSession
from console.gateway.engine.signing import Credentials, CredentialStore, Signing
from console.gateway.engine.watch import Watch

P = ParamSpec("P")
T = TypeVar("T")

#: Time that a thread waits beyond the deadline for the event loop to report TooSlow, seconds.
WAIT_SLACK_S = 2.0


class Names(Protocol):
    """The names of topics and groups that a reader sees."""

    def topic(self, name: str) -> bool: ...
    def group(self, name: str) -> bool: ...
    def filtered(self, value: Any) -> Any: ...


class Cluster:
    """A handle on one cluster: `ask` and `do` for threads, `ask_async` for other event loops."""

    def __init__(
        self,
        name: str,
        namesrv_addr: str,
        loop: GatewayLoop,
        session: Callable[[], Awaitable[ClusterSession]],
        known: KnownBrokers,
        memory: BrokerMemory | None,
        signing: Signing,
        store: CredentialStore | None,
        *,
        read_only: Callable[[str], bool] | None,
    ) -> None:
        self.name = name
        self.namesrv_addr = namesrv_addr
        self._loop = loop
        self._session = session
        self._known = known
        self._memory = memory
        self._store = store
        self._read_only = read_only
        #: The credentials that sign the requests to the cluster.
        self.signing = signing
        #: The mask of the reader, for questions that return messages; None: nothing is masked.
        self.mask: Callable[[], Any] | None = None
        #: The names that the reader sees; None: all of them.
        self.names: Names | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def is_read_only(self) -> bool:
        """True when the console must not change the cluster. Reads the database."""
        return self._read_only is not None and self._read_only(self.name)

    def ask(self, question: Question[P, T], *args: P.args, **kwargs: P.kwargs) -> Answer[T]:
        """Ask from a thread. Blocks until the answer or the question's deadline."""
        timeout_s = question.deadline_ms / 1000 + WAIT_SLACK_S
        self._load()
        if self.mask is not None and question.takes_mask:
            kwargs["mask"] = self.mask()
        try:
            return self._seen(self._loop.wait(self._ask(question, *args, **kwargs), timeout_s))
        finally:
            self._save_known()

    def ask_within(
        self, wait_s: float, question: Question[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> Answer[T] | None:
        """Ask from a thread, and wait at most `wait_s`: None for a later answer.

        The question goes on and fills the cache, so the next request for the page has the answer.
        For questions about the complete cluster, which return no messages.
        """
        assert not question.takes_mask, question.name
        self._load()
        future = self._loop.submit(self._ask(question, *args, **kwargs))
        try:
            return self._seen(future.result(wait_s))
        except WaitedTooLong:
            return None
        finally:
            self._save_known()

    async def ask_async(
        self, question: Question[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> Answer[T]:
        """Ask from another event loop, such as the web server's."""
        if self._load_due():
            await database_sync_to_async(self._load)()
        if self.mask is not None and question.takes_mask:
            kwargs["mask"] = await database_sync_to_async(self.mask)()
        work = self._ask(question, *args, **kwargs)
        try:
            return self._seen(await asyncio.wrap_future(self._loop.submit(work)))
        finally:
            if self._memory is not None and self._known.unsaved():
                await database_sync_to_async(self._save_known)()

    def do(self, command: Command[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a command from a thread. Blocks until its result or its deadline.

        Raises ReadOnly for a change of a read-only cluster; a dry run changes nothing.
        """
        if command.changes_cluster and not kwargs.get("dry_run") and self.is_read_only:
            raise ReadOnly(self.name)
        timeout_s = command.deadline_ms / 1000 + WAIT_SLACK_S
        self._load()
        return self._loop.wait(self._do(command, *args, **kwargs), timeout_s)

    def sees_topic(self, name: str) -> bool:
        return self.names is None or self.names.topic(name)

    def save_credentials(self, path: Path) -> bool:
        """Write the keys that sign the requests to a private file, for a program that asks the
        cluster; return False without keys.

        Reads the database. Raises OSError, and ClientError as `Credentials.save`.
        """
        self._load()
        credentials = self.signing.current
        if credentials is not None:
            credentials.save(path)
        return credentials is not None

    def forget_in_memory(self, ref: BrokerRef) -> None:
        """Remove a broker from the storage; `forget_broker` ends the entry of this process."""
        if self._memory is not None:
            self._memory.forget(self.name, ref)

    def _seen(self, answer: Answer[T]) -> Answer[T]:
        """The answer without names that the reader does not see."""
        if self.names is None:
            return answer
        return replace(answer, value=self.names.filtered(answer.value))

    def _load_due(self) -> bool:
        at_ms = now_ms()
        return (self._memory is not None and self._known.load_due(at_ms)) or (
            self._store is not None and self.signing.load_due(at_ms)
        )

    def _load(self) -> None:
        if self._memory is not None:
            self._known.load(self._memory, self.name, now_ms())
        if self._store is not None:
            self.signing.load(self._store, self.name, now_ms())

    def _save_known(self) -> None:
        if self._memory is not None:
            self._known.save(self._memory, self.name)

    async def _ask(self, question: Question[P, T], *args: P.args, **kwargs: P.kwargs) -> Answer[T]:
        return await (await self._session()).ask_anew(question, *args, **kwargs)

    async def _do(self, command: Command[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await (await self._session()).do(command, *args, **kwargs)


class Gateway:
    """The clusters of one process. `cluster` reads the setting CONSOLE_CLUSTERS on each call."""

    def __init__(self) -> None:
        self._loop = GatewayLoop()
        self._sessions: dict[tuple[str, str], tuple[asyncio.AbstractEventLoop, ClusterSession]] = {}
        self._watches: dict[ClusterSession, Watch] = {}
        self._known: dict[tuple[str, str], KnownBrokers] = {}
        self._signings: dict[tuple[str, Credentials | None], Signing] = {}
        #: Storage of the known brokers; None: the table ends with the process.
        self.memory: BrokerMemory | None = None
        #: Storage of the credentials of clusters; None: only those of the environment.
        self.credentials: CredentialStore | None = None
        #: Tells whether a cluster is read-only; None: no cluster is.
        self.read_only: Callable[[str], bool] | None = None
        #: The rules of masks of a cluster; None: no rules. Reads the database.
        self.mask_rules: Callable[[str], tuple[Any, ...]] | None = None
        #: The question repeated while a cluster is in use; None: no watch.
        self.watched: Question[[], Any] | None = None

    def cluster(self, name: str) -> Cluster:
        addr = settings.CONSOLE_CLUSTERS.get(name)
        if addr is None:
            raise UnknownCluster(name)
        known = self._known.setdefault((name, addr), KnownBrokers())
        return Cluster(
            name,
            addr,
            self._loop,
            lambda: self._session(name, addr),
            known,
            self.memory,
            self._signing(name),
            self.credentials,
            read_only=self.read_only,
        )

    def clusters(self) -> list[Cluster]:
        return [self.cluster(name) for name in settings.CONSOLE_CLUSTERS]

    def close(self) -> None:
        """Close all connections and stop the event loop; the next question starts a new one."""
        if self._sessions:
            self._loop.wait(self._close_sessions(), WAIT_SLACK_S)
        self._loop.stop()
        self._known.clear()
        self._signings.clear()

    def _signing(self, name: str) -> Signing:
        fixed = settings.CONSOLE_CLUSTER_CREDENTIALS.get(name)
        # By the credentials too: a late question to a closed gateway leaves an entry behind.
        return self._signings.setdefault((name, fixed), Signing(fixed))

    async def _session(self, name: str, namesrv_addr: str) -> ClusterSession:
        """Return the session of a cluster on this event loop; a forked process has its own loop."""
        running = asyncio.get_running_loop()
        opened_on, session = self._sessions.get((name, namesrv_addr), (None, None))
        if session is None or opened_on is not running:
            known = self._known.setdefault((name, namesrv_addr), KnownBrokers())
            tls = settings.CONSOLE_CLUSTER_TLS.get(name)
            session = ClusterSession(name, namesrv_addr, known, tls, self._signing(name))
            self._sessions[name, namesrv_addr] = (running, session)
        if self.watched is not None:
            self._watches.setdefault(session, Watch(session, self.watched)).extend()
        return session

    async def _close_sessions(self) -> None:
        sessions, self._sessions = self._sessions, {}
        self._watches.clear()  # the loop cancels their tasks
        for _loop, session in sessions.values():
            await session.close()


gateway = Gateway()
