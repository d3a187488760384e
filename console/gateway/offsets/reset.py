"""Offset resets of a consumer group: the plan (preview) and the command.

The method depends on the broker and on online consumers:

    CODE    a Gantry broker accepts an offset per queue (60003) and notifies the consumers
    SERVER  RocketMQ 5 with useServerSideResetOffset accepts one queue's offset per request (222)
    TIME    other brokers send their consumers one timestamp for all queues (222)
    COMMIT  of an offline group, the console sets the committed offsets (15)

Preview and command use the same method, so the preview shows the effect of the command.
"""

import asyncio
from collections.abc import Mapping, Sequence

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.changes import BrokerOutcome, check_unchanged, outcomes
from console.gateway.engine.answers import Partial
from console.gateway.engine.errors import NotAllowedNow, NotFound, Unusable
from console.gateway.engine.questions import command, question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.groups.members import group_clients
from console.gateway.messages.paging import Window
from console.gateway.messages.queue_slices import QueueRef
from console.gateway.messages.windows import first_stored_at
from console.gateway.offsets.plan import (
    Key,
    Plan,
    QueueMove,
    QueuePosition,
    ResetMethod,
    ResetRequest,
    ResetTarget,
    etag_of,
)
from console.gateway.offsets.positions import PLAN_DEADLINE_MS, QUEUES_AT_ONCE_MAX, positions
from core_broker.client.admin.inventory import offered_codes
from core_broker.errors import RequestRefused
from core_broker.remoting.bodies import MessageQueue
from core_broker.remoting.codes import RequestCode

RESET_DEADLINE_MS = 40_000
#: Timestamp of request 222 that stands for the end of each queue.
TO_THE_END = -1
OFFSET_MAX = 2**62


@question(fresh_for_ms=0, deadline_ms=PLAN_DEADLINE_MS)
async def plan(session: ClusterSession, group: str, request: ResetRequest) -> Partial[Plan]:
    """The new offset of each queue. Raises NotAllowedNow when the brokers do not support the reset
    while consumers are online, Unusable for an invalid request."""
    held = await session.ask(positions, group, request.topic)
    if held.failures:
        raise NotAllowedNow(
            _("A broker of the topic does not answer, so nobody can tell where the group is."),
            failures=held.failures,
        )
    members = await session.ask(group_clients, group)
    if members.value.broadcasting:
        raise NotAllowedNow(
            _("The group consumes by broadcast: each client keeps its own offsets."),
            hint=_("Stop the client, delete its offsets file, and start it again."),
        )
    online = tuple(each.client_id for each in members.value.clients)
    brokers = sorted({each.broker for each in held.value})
    methods = [(broker, await _method(session, broker, online=bool(online))) for broker in brokers]
    _check_methods(request, methods)
    by_time = ResetMethod.TIME in dict(methods).values()
    targets = await _targets(session, group, request, held.value, by_time=by_time)
    moves = tuple(_move(each, targets.get(each.key)) for each in held.value)
    return Partial(
        Plan(group, request.topic, moves, online, tuple(methods), etag_of(held.value)),
        members.failures,
    )


@command(deadline_ms=RESET_DEADLINE_MS)
async def reset(
    session: ClusterSession, group: str, request: ResetRequest, expected_etag: str | None = None
) -> tuple[Plan, tuple[BrokerOutcome, ...]]:
    """Reset the offsets; return the plan and one outcome per broker."""
    planned = (await session.ask(plan, group, request)).value
    check_unchanged(expected_etag, planned.etag)
    methods = dict(planned.methods)
    changed = [
        broker
        for broker in methods
        if any(move.position.broker == broker and move.new is not None for move in planned.moves)
    ]

    async def go(broker: BrokerRef) -> None:
        offsets = {
            each.position.queue_id: each.new
            for each in planned.moves
            if each.position.broker == broker and each.new is not None
        }
        await _bring(session, broker, methods[broker], group, request, offsets)

    _done, failures = await session.fan_out(changed, go)
    return planned, outcomes(changed, failures)


async def _method(session: ClusterSession, broker: BrokerRef, *, online: bool) -> ResetMethod:
    """Return the reset method of a broker."""
    try:
        offered = offered_codes(await session.admin.runtime_info(broker.addr))
    except RequestRefused:  # RocketMQ's broker fails this request in its first second
        offered = frozenset()
    if RequestCode.SET_GROUP_OFFSETS in offered:
        return ResetMethod.CODE
    if not online:
        return ResetMethod.COMMIT
    settings = await session.admin.broker_config(broker.addr)
    is_server_side = settings.get("useServerSideResetOffset", "").lower() == "true"
    return ResetMethod.SERVER if is_server_side else ResetMethod.TIME


def _check_methods(request: ResetRequest, methods: Sequence[tuple[BrokerRef, ResetMethod]]) -> None:
    """Raise NotAllowedNow for TIME brokers unless one timestamp for all queues is enough."""
    one_time = (
        request.goal in {ResetTarget.EARLIEST, ResetTarget.LATEST, ResetTarget.TIME}
        and not request.queues
    )
    limited = [broker.name for broker, method in methods if method is ResetMethod.TIME]
    if limited and not one_time:
        raise NotAllowedNow(
            format_lazy(
                _("While consumers are online, {brokers} can move all queues to one time only."),
                brokers=", ".join(limited),
            ),
            hint=_(
                "Stop the consumers first, or choose earliest, latest or a time for all queues."
            ),
        )


async def _targets(
    session: ClusterSession,
    group: str,
    request: ResetRequest,
    held: Sequence[QueuePosition],
    *,
    by_time: bool,
) -> dict[Key, int]:
    """Return the target offset of each queue, before the limit to stored messages."""
    chosen = _chosen(request, held)
    match request.goal:
        case ResetTarget.EARLIEST:
            return {each.key: each.begin for each in chosen}
        case ResetTarget.LATEST:
            return {each.key: each.end for each in chosen}
        case ResetTarget.TIME:
            return await _at_time(session, request, chosen, by_time=by_time)
        case ResetTarget.EXACT:
            return {each.key: _given(request.offset, "offset") for each in chosen}
        case ResetTarget.SHIFT:
            by = _given(request.by, "by")
            return {each.key: each.offset + by for each in chosen if each.offset is not None}
        case ResetTarget.COPY:
            return await _of_group(session, group, request, chosen)
        case ResetTarget.EACH:
            named = dict(request.each)
            return {each.key: named[each.key] for each in chosen}


def _chosen(request: ResetRequest, held: Sequence[QueuePosition]) -> list[QueuePosition]:
    """Return the selected queues; NotFound for a queue that the topic does not have."""
    named = (
        [key for key, _offset in request.each]
        if request.goal is ResetTarget.EACH
        else request.queues
    )
    known = {each.key: each for each in held}
    missing = [
        f"{broker}:{queue_id}" for broker, queue_id in named if (broker, queue_id) not in known
    ]
    if missing:
        raise NotFound(
            format_lazy(_("The topic has no queue {names}."), names=", ".join(missing[:10]))
        )
    return [known[key] for key in dict.fromkeys(named)] if named else list(held)


async def _at_time(
    session: ClusterSession,
    request: ResetRequest,
    chosen: Sequence[QueuePosition],
    *,
    by_time: bool,
) -> dict[Key, int]:
    """Return the first message stored at the time or later; with `by_time` the broker's own answer,
    which RocketMQ rounds to a message nearby."""
    moment_ms = _given(request.time_ms, "time_ms")
    gate = asyncio.Semaphore(QUEUES_AT_ONCE_MAX)

    async def find(position: QueuePosition) -> tuple[Key, int]:
        async with gate:
            addr = position.broker.addr
            if by_time:
                found = await session.admin.search_offset(
                    addr, request.topic, position.queue_id, moment_ms
                )
                return position.key, found
            queue = QueueRef(request.topic, position.broker, position.queue_id, readable=True)
            window = Window(queue, position.begin, position.end)
            return position.key, await first_stored_at(session, window, moment_ms)

    return dict(await asyncio.gather(*(find(each) for each in chosen)))


async def _of_group(
    session: ClusterSession, group: str, request: ResetRequest, chosen: Sequence[QueuePosition]
) -> dict[Key, int]:
    """Return the offsets of another group; its queues without an offset stay unchanged."""
    if not request.group or request.group == group:
        raise Unusable(_("Name another group to copy the offsets from."))
    others = {
        each.key: each
        for each in (await session.ask(positions, request.group, request.topic)).value
    }
    found = {
        each.key: offset
        for each in chosen
        if (other := others.get(each.key)) is not None and (offset := other.offset) is not None
    }
    if not found:
        raise NotFound(
            format_lazy(
                _("Group “{group}” has no offset in topic “{topic}”."),
                group=request.group,
                topic=request.topic,
            )
        )
    return found


def _move(position: QueuePosition, target: int | None) -> QueueMove:
    if target is None:
        return QueueMove(position, None)
    new = min(max(target, position.begin), position.end)
    # A queue without a committed offset counts as moved, even to the consumers' start offset.
    return QueueMove(position, None if new == position.offset else new, is_limited=new != target)


async def _bring(
    session: ClusterSession,
    broker: BrokerRef,
    method: ResetMethod,
    group: str,
    request: ResetRequest,
    offsets: Mapping[int, int],
) -> None:
    admin, addr, topic = session.admin, broker.addr, request.topic
    if method is ResetMethod.CODE:
        table = {MessageQueue(topic, broker.name, each): offsets[each] for each in offsets}
        await admin.set_group_offsets(addr, group, topic, table)
    elif method is ResetMethod.SERVER:
        for queue_id, offset in offsets.items():
            await admin.reset_queue_offset(addr, group, topic, queue_id, offset)
    elif method is ResetMethod.TIME:
        times = {ResetTarget.EARLIEST: 0, ResetTarget.LATEST: TO_THE_END}
        moment_ms = times.get(request.goal, request.time_ms or 0)
        await admin.reset_offset(addr, group, topic, moment_ms, force=True)
    else:
        for queue_id, offset in offsets.items():
            await admin.update_consumer_offset(addr, group, topic, queue_id, offset)


def _given(value: int | None, name: str) -> int:
    if value is None:
        raise Unusable(format_lazy(_("This goal needs “{name}”."), name=name))
    return value
