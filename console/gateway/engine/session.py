"""The session of one cluster: questions, commands and requests to its brokers.

Everything here runs on the gateway's event loop.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.conf import settings
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console import metrics
from console.gateway.engine.answers import Answer, BrokerFailure, Partial, kind_of, now_ms
from console.gateway.engine.cache import AnswerCache
from console.gateway.engine.causes import Causes
from console.gateway.engine.errors import (
    ClusterUnreachable,
    GatewayError,
    NotFound,
    Refused,
    TooSlow,
    Unusable,
)
from console.gateway.engine.known_brokers import BrokerRef, KnownBrokers
from console.gateway.engine.last_answers import Key, LastAnswers
from console.gateway.engine.liveness import Liveness
from console.gateway.engine.own_reads import OwnReads
from console.gateway.engine.questions import Command, Question
from console.gateway.engine.signing import Signing
from core_broker.client import AdminClient, ClientTls
from core_broker.errors import (
    ClientError,
    GantryError,
    ProtocolError,
    RequestRefused,
    TransportError,
)

__all__ = ["BrokerRef", "ClusterSession"]

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")

#: Timeout of one request to a broker or name server, milliseconds.
REQUEST_TIMEOUT_MS = 3_000
#: Maximum number of concurrent requests to brokers of a cluster.
FAN_OUT_MAX = 32

#: True in the task of a command: commands send requests also to brokers that are down.
_inside_command: ContextVar[bool] = ContextVar("inside_command", default=False)


class ClusterSession:
    """Runs questions and commands on one cluster through one admin client.

    `derived` results and cached answers belong to this session; `close` ends its connections.
    """

    def __init__(
        self,
        cluster: str,
        namesrv_addr: str,
        known: KnownBrokers | None = None,
        tls: ClientTls | None = None,
        signing: Signing | None = None,
    ) -> None:
        self.cluster = cluster
        self.namesrv_addr = namesrv_addr
        #: TLS settings of all clients of the session.
        self.tls = tls
        self._signing = Signing() if signing is None else signing
        #: RPC hooks of all clients of the session: they sign the requests.
        self.rpc_hooks = (self._signing,)
        self.admin = AdminClient(
            namesrv_addr,
            timeout_ms=REQUEST_TIMEOUT_MS,
            rpc_hooks=self.rpc_hooks,
            tls=tls,
            shares_tables=True,
        )
        self.answers = AnswerCache()
        self.own_reads = OwnReads()
        self.known = KnownBrokers() if known is None else known
        self.last_answers = LastAnswers()
        # Cached answers must not outlive the state of the brokers.
        self.liveness = Liveness(self.answers.invalidate)
        self.causes = Causes(self.admin.runtime_info)
        self._fan_out_limit = asyncio.Semaphore(FAN_OUT_MAX)
        self._probes: set[asyncio.Task[None]] = set()
        self._derived: dict[str, tuple[Any, Any]] = {}

    @property
    def signed_as(self) -> str | None:
        """The account that signs the requests; None: requests are not signed."""
        current = self._signing.current
        return None if current is None else current.access_key

    async def close(self) -> None:
        for probe in self._probes:
            probe.cancel()
        await self.admin.close()

    def derived(self, name: str, source: S, make: Callable[[S], T]) -> T:
        """Return `make(source)`, or the previous result when the source has not changed.

        To compare thousands of settings is much cheaper than to derive rows from them.
        """
        known = self._derived.get(name)
        if known is None or known[0] != source:
            known = self._derived[name] = source, make(source)
        value: T = known[1]
        return value

    def derived_each(
        self, name: str, sources: Mapping[str, S], make: Callable[[str, S], T]
    ) -> dict[str, T]:
        """Like `derived` for each named source. Results of names that are gone are dropped."""
        known: dict[str, tuple[S, T]] = self._derived.get(name, ({}, None))[0]
        results = {
            key: old
            if (old := known.get(key)) is not None and old[0] == source
            else (source, make(key, source))
            for key, source in sources.items()
        }
        self._derived[name] = results, None
        return {key: value for key, (_source, value) in results.items()}

    async def ask(self, question: Question[P, T], *args: P.args, **kwargs: P.kwargs) -> Answer[T]:
        """Ask the cluster, or return the shared answer of an equal question (see `AnswerCache`)."""
        key = (question, args, tuple(sorted(kwargs.items())), self._signing.generation)

        async def ask() -> Partial[T]:
            return await self._within(question, question.run, *args, **kwargs)

        return await self.answers.get(key, question.fresh_for_ms, ask, costly=question.costly)

    async def ask_anew(
        self, question: Question[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> Answer[T]:
        """Like `ask`; a name that older lists lack is asked for once more, without these lists.

        Another tool may have created the object since. `AnswerCache.drop_lists` limits the rate.
        """
        asked_ms = now_ms()
        try:
            return await self.ask(question, *args, **kwargs)
        except NotFound:
            if not self.answers.drop_lists(asked_ms):
                raise
        return await self.ask(question, *args, **kwargs)

    async def do(self, command: Command[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a command, then invalidate the cached answers, also after a failure."""
        _inside_command.set(True)  # in the context of the command's own task
        try:
            return await self._within(command, command.run, *args, **kwargs)
        finally:
            self.answers.invalidate()

    async def fan_out(
        self,
        brokers: Iterable[BrokerRef],
        ask: Callable[[BrokerRef], Awaitable[T]],
        *,
        one_must_answer: bool = True,
        keep: Key | None = None,
    ) -> tuple[dict[BrokerRef, T], tuple[BrokerFailure, ...]]:
        """Send a request to several brokers at the same time; return answers and failures.

        With `keep`, the name and the arguments of the request, the last answer of a broker takes
        the place of a missing one, and the failure carries the time of the last answer.

        When every broker fails and no last answer is known, `fan_out` raises Refused (all refused)
        or ClusterUnreachable; with `one_must_answer=False`, `fan_out` returns the failures.
        """
        refs = list(brokers)
        outcomes = await asyncio.gather(*(self._one(ref, ask, keep) for ref in refs))
        answers: dict[BrokerRef, T] = {}
        failures: list[BrokerFailure] = []
        for ref, (value, failure) in zip(refs, outcomes, strict=True):
            if failure is None:
                answers[ref] = value  # type: ignore[assignment]
                continue
            lost = keep is not None and isinstance(failure, TransportError)
            last = self.last_answers.find(keep, ref.addr) if keep and lost else None
            if last is not None:
                answers[ref] = last[0]
            as_of_ms = last[1] if last is not None else None
            failures.append(
                BrokerFailure(ref.name, ref.addr, str(failure), as_of_ms, kind_of(failure))
            )
        if failures and not answers and one_must_answer:
            refusals = [failure for _, failure in outcomes if isinstance(failure, RequestRefused)]
            if len(refusals) == len(failures):
                raise Refused(refusals[0], failures=tuple(failures))
            raise ClusterUnreachable(
                _("The brokers refused the request or cannot be reached.")
                if refusals
                else _("None of the cluster's brokers answered."),
                hint=format_lazy(
                    _("Check that the brokers at {addrs} run and can be reached."),
                    addrs=", ".join(sorted({ref.addr for ref in refs})),
                ),
                failures=tuple(failures),
            )
        return answers, tuple(failures)

    async def _one(
        self, ref: BrokerRef, ask: Callable[[BrokerRef], Awaitable[T]], keep: Key | None
    ) -> tuple[T | None, GantryError | None]:
        """Return one broker's answer or its failure.

        A question gets the known failure of a broker that is down; otherwise every question would
        wait for the connect timeout. A command always tries.
        """
        down = self.liveness.failure(ref.addr)
        if down is not None and not _inside_command.get():
            if self.liveness.probe_due(ref.addr, now_ms()):
                self._start_probe(ref)
            return None, down
        return await self._request(ref, ask, keep)

    async def _request(
        self, ref: BrokerRef, ask: Callable[[BrokerRef], Awaitable[T]], keep: Key | None
    ) -> tuple[T | None, GantryError | None]:
        asked_ms = now_ms()
        try:
            async with self._fan_out_limit:
                asked_ms = now_ms()
                value = await ask(ref)
        except TransportError as failure:
            self.liveness.failed(ref.addr, failure, asked_ms, now_ms())
            return None, failure
        except (RequestRefused, ProtocolError) as failure:
            self._answered(ref)
            return None, failure
        self._answered(ref)
        if keep is not None:
            self.last_answers.store(keep, ref.addr, value, now_ms())
        return value, None

    def _answered(self, ref: BrokerRef) -> None:
        self.liveness.answered(ref.addr, now_ms())
        self.known.contacted(ref, now_ms())

    def _start_probe(self, ref: BrokerRef) -> None:
        """Send a harmless request to a broker that is down, in the background."""

        async def probe() -> None:
            await self._request(ref, lambda ref: self.admin.runtime_info(ref.addr), None)

        task = asyncio.create_task(probe(), name=f"probe {ref.addr}")
        self._probes.add(task)
        task.add_done_callback(self._probes.discard)

    def forget(self, ref: BrokerRef) -> None:
        """Drop all state of a broker that was decommissioned."""
        self.known.forget(ref)
        self.liveness.forget(ref.addr)
        self.last_answers.forget(ref.addr)
        self.answers.invalidate()

    async def _within(
        self,
        asked: Question[..., Any] | Command[..., Any],
        run: "Callable[Concatenate[ClusterSession, P], Awaitable[T]]",
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run under the deadline and translate errors of the client into gateway errors."""
        started, outcome = perf_counter(), "error"
        try:
            async with asyncio.timeout(asked.deadline_ms / 1000):
                value = await run(self, *args, **kwargs)
            outcome = "ok"
        except TimeoutError as slow:
            raise TooSlow(
                format_lazy(
                    _("The cluster did not answer “{name}” within {seconds} seconds."),
                    name=asked.name,
                    seconds=asked.deadline_ms / 1000,
                )
            ) from slow
        except RequestRefused as refusal:
            raise Refused(await self.causes.named(refusal)) from refusal
        except TransportError as failure:
            raise self._unreachable(failure) from failure
        except ClientError as misuse:
            raise Unusable(str(misuse)) from misuse
        except ProtocolError as failure:
            raise GatewayError(str(failure)) from failure
        else:
            return value
        finally:
            metrics.observe_question(self.cluster, asked.name, outcome, perf_counter() - started)

    def _unreachable(self, failure: TransportError) -> ClusterUnreachable:
        if failure.addr not in self.namesrv_addr.split(";"):
            return ClusterUnreachable(str(failure))
        return ClusterUnreachable(
            str(failure),
            hint=format_lazy(
                _(
                    "This is the name server of cluster “{cluster}”. Start it, or correct its "
                    "address in the setting {setting}."
                ),
                cluster=self.cluster,
                setting=settings.CONSOLE_CLUSTERS_FROM,
            ),
        )
