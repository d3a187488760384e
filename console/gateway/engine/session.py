"""The session of one cluster: questions, commands and requests to its brokers.

Everything here runs on the gateway's event loop.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.conf import settings
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console import metrics
from console.gateway.engine.answers import Answer, BrokerFailure, Partial, now_ms
from console.gateway.engine.cache import AnswerCache
from console.gateway.engine.errors import (
    ClusterUnreachable,
    GatewayError,
    Refused,
    TooSlow,
    Unusable,
)
from console.gateway.engine.questions import Command, Question
from core_broker.client import AdminClient
from core_broker.errors import (
    ClientError,
    GantryError,
    ProtocolError,
    RequestRefused,
    TransportError,
)

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")

#: Timeout of one request to a broker or name server, milliseconds.
REQUEST_TIMEOUT_MS = 3_000
#: Maximum number of concurrent requests to brokers of a cluster.
FAN_OUT_MAX = 32
#: Pause before the next request to a broker that could not be reached, milliseconds.
BROKER_BACKOFF_MS = 3_000


@dataclass(frozen=True, slots=True, order=True)
class BrokerRef:
    """A broker process: name, id (0 is the master) and address, `host:port`."""

    name: str
    id: int
    addr: str

    @property
    def is_master(self) -> bool:
        return self.id == 0


class ClusterSession:
    """Runs questions and commands on one cluster through one admin client.

    `derived` results and cached answers belong to this session; `close` ends its connections.
    """

    def __init__(self, cluster: str, namesrv_addr: str) -> None:
        self.cluster = cluster
        self.namesrv_addr = namesrv_addr
        self.admin = AdminClient(namesrv_addr, timeout_ms=REQUEST_TIMEOUT_MS)
        self.answers = AnswerCache()
        self._fan_out_limit = asyncio.Semaphore(FAN_OUT_MAX)
        #: By address: end of the pause after a transport error, and the error.
        self._backoff: dict[str, tuple[int, TransportError]] = {}
        self._derived: dict[str, tuple[Any, Any]] = {}

    async def close(self) -> None:
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
        key = (question, args, tuple(sorted(kwargs.items())))

        async def ask() -> Partial[T]:
            return await self._within(question, question.run, *args, **kwargs)

        return await self.answers.get(key, question.fresh_for_ms, ask, costly=question.costly)

    async def do(self, command: Command[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a command, then invalidate the cached answers, also after a failure."""
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
    ) -> tuple[dict[BrokerRef, T], tuple[BrokerFailure, ...]]:
        """Send a request to several brokers at the same time; return answers and failures.

        When every broker fails, `fan_out` raises Refused (all refused) or ClusterUnreachable; with
        `one_must_answer=False`, `fan_out` returns the failures.
        """
        refs = list(brokers)
        outcomes = await asyncio.gather(*(self._one(ref, ask) for ref in refs))
        answers: dict[BrokerRef, T] = {}
        failures: list[BrokerFailure] = []
        for ref, (value, failure) in zip(refs, outcomes, strict=True):
            if failure is None:
                answers[ref] = value  # type: ignore[assignment]
            else:
                failures.append(BrokerFailure(ref.name, ref.addr, str(failure)))
        if failures and not answers and one_must_answer:
            refusals = [failure for _, failure in outcomes if isinstance(failure, RequestRefused)]
            if len(refusals) == len(failures):
                raise Refused(refusals[0], failures=tuple(failures))
            raise ClusterUnreachable(
                _("None of the cluster's brokers answered."),
                hint=format_lazy(
                    _("The name server lists {addrs}. Check that they run and can be reached."),
                    addrs=", ".join(sorted({ref.addr for ref in refs})),
                ),
                failures=tuple(failures),
            )
        return answers, tuple(failures)

    async def _one(
        self, ref: BrokerRef, ask: Callable[[BrokerRef], Awaitable[T]]
    ) -> tuple[T | None, GantryError | None]:
        """Return one broker's answer or its failure.

        For BROKER_BACKOFF_MS after a transport error, the error is returned without a request;
        otherwise each question would wait for the connect timeout of a dead broker.
        """
        backoff = self._backoff.get(ref.addr)
        if backoff is not None and now_ms() < backoff[0]:
            return None, backoff[1]
        try:
            async with self._fan_out_limit:
                value = await ask(ref)
        except TransportError as failure:
            self._backoff[ref.addr] = (now_ms() + BROKER_BACKOFF_MS, failure)
            return None, failure
        except (RequestRefused, ProtocolError) as failure:
            return None, failure
        self._backoff.pop(ref.addr, None)
        return value, None

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
            raise Refused(refusal) from refusal
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
