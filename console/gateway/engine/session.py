"""A desk: one cluster as its questions see it. Everything here runs on the gateway's loop."""

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
from console.gateway.engine.errors import (
    ClusterUnreachable,
    GatewayError,
    Refused,
    TooSlow,
    Unusable,
)
from console.gateway.engine.questions import AnswerCache, Command, Question
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

REQUEST_TIMEOUT_MS = 3_000
FAN_OUT_MAX = 32
BROKER_REST_MS = 3_000


@dataclass(frozen=True, slots=True, order=True)
class BrokerRef:
    """One broker process: its name, its id (0 is the master), and where it listens."""

    name: str
    id: int
    addr: str

    @property
    def is_master(self) -> bool:
        return self.id == 0


class Desk:
    """Asks one cluster through one admin client."""

    def __init__(self, cluster: str, namesrv_addr: str) -> None:
        self.cluster = cluster
        self.namesrv_addr = namesrv_addr
        self.admin = AdminClient(namesrv_addr, timeout_ms=REQUEST_TIMEOUT_MS)
        self.answers = AnswerCache()
        self._fan_out = asyncio.Semaphore(FAN_OUT_MAX)
        self._resting: dict[str, tuple[int, TransportError]] = {}
        self._derived: dict[str, tuple[Any, Any]] = {}

    async def close(self) -> None:
        await self.admin.close()

    def derived(self, name: str, source: S, make: Callable[[S], T]) -> T:
        """What `make` makes of the source, or made of it the last time: comparing thousands of
        settings is much cheaper than working through them."""
        known = self._derived.get(name)
        if known is None or known[0] != source:
            known = self._derived[name] = source, make(source)
        value: T = known[1]
        return value

    def derived_each(
        self, name: str, sources: Mapping[str, S], make: Callable[[str, S], T]
    ) -> dict[str, T]:
        """The same for each of many things by name; what is gone is forgotten."""
        known: dict[str, tuple[S, T]] = self._derived.get(name, ({}, None))[0]
        made = {
            each: old
            if (old := known.get(each)) is not None and old[0] == source
            else (source, make(each, source))
            for each, source in sources.items()
        }
        self._derived[name] = made, None
        return {each: value for each, (_source, value) in made.items()}

    async def ask(self, question: Question[P, T], *args: P.args, **kwargs: P.kwargs) -> Answer[T]:
        """Ask, or share the answer of somebody who just asked the same."""
        key = (question, args, tuple(sorted(kwargs.items())))

        async def ask() -> Partial[T]:
            return await self._within(question, question.run, *args, **kwargs)

        return await self.answers.get(key, question.fresh_for_ms, ask, costly=question.costly)

    async def do(self, command: Command[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Carry out a change, and forget what was known before it, whether it succeeded or not."""
        try:
            return await self._within(command, command.run, *args, **kwargs)
        finally:
            self.answers.forget()

    async def each(
        self,
        brokers: Iterable[BrokerRef],
        ask: Callable[[BrokerRef], Awaitable[T]],
        *,
        one_must_answer: bool = True,
    ) -> tuple[dict[BrokerRef, T], tuple[BrokerFailure, ...]]:
        """Ask brokers together; those that fail are named, the others' answers are kept.

        When there were brokers and none of them gave an answer it raises Refused, or else
        ClusterUnreachable, unless told that this is an answer too.
        """
        refs = list(brokers)
        outcomes = await asyncio.gather(*(self._one(ref, ask) for ref in refs))
        found: dict[BrokerRef, T] = {}
        failures: list[BrokerFailure] = []
        for ref, (value, failure) in zip(refs, outcomes, strict=True):
            if failure is None:
                found[ref] = value  # type: ignore[assignment]
            else:
                failures.append(BrokerFailure(ref.name, ref.addr, str(failure)))
        if failures and not found and one_must_answer:
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
        return found, tuple(failures)

    async def _one(
        self, ref: BrokerRef, ask: Callable[[BrokerRef], Awaitable[T]]
    ) -> tuple[T | None, GantryError | None]:
        """One broker's answer or its failure; one that cannot be reached rests for a moment."""
        resting = self._resting.get(ref.addr)
        if resting is not None and now_ms() < resting[0]:
            return None, resting[1]
        try:
            async with self._fan_out:
                value = await ask(ref)
        except TransportError as failure:
            self._resting[ref.addr] = (now_ms() + BROKER_REST_MS, failure)
            return None, failure
        except (RequestRefused, ProtocolError) as failure:
            return None, failure
        self._resting.pop(ref.addr, None)
        return value, None

    async def _within(
        self,
        asked: Question[..., Any] | Command[..., Any],
        run: "Callable[Concatenate[Desk, P], Awaitable[T]]",
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run under the deadline, and turn what the client raises into the gateway's errors."""
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
            metrics.asked(self.cluster, asked.name, outcome, perf_counter() - started)

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
