"""The controllers of a cluster: the brokers' settings name them (`controllerAddr`).

RocketMQ's controllers and Gantry's answer the same request for metadata (1005).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from console.gateway.brokers.listing import broker_refs
from console.gateway.engine.answers import BrokerFailure, Partial
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.replicas.model import CONTROLLER, Controller, ControllerGroup
from core_broker.remoting.headers.controller import GetMetaDataResponseHeader

#: Maximum number of controllers of a group.
CONTROLLERS_MAX: Final = 15
#: Maximum number of groups of a cluster.
GROUPS_MAX: Final = 20
_MODE: Final = "enableControllerMode"
_ADDRS: Final = "controllerAddr"
_ADDR: Final = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253}):[0-9]{1,5}")


@question(fresh_for_ms=1_000)
async def controller_groups(session: ClusterSession) -> Partial[tuple[ControllerGroup, ...]]:
    """The controllers of all brokers in controller mode; failures name those without an answer."""
    configs, _failures = await session.fan_out(
        await broker_refs(session),
        lambda ref: session.admin.broker_config(ref.addr),
        one_must_answer=False,
        keep=("broker_config",),
    )
    wanted = groups_in(configs)
    refs = {addr: BrokerRef(CONTROLLER, 0, addr) for addrs in wanted for addr in addrs}
    found, failures = await session.fan_out(
        refs.values(),
        lambda ref: session.admin.controller_metadata([ref.addr]),
        one_must_answer=False,
    )
    answers = {ref.addr: metadata for ref, metadata in found.items()}
    reasons = reasons_by_addr(failures)
    groups = tuple(
        ControllerGroup(controllers_in(addrs, answers, reasons), names)
        for addrs, names in wanted.items()
    )
    return Partial(groups, failures)


def controllers_in(
    addrs: Sequence[str],
    answers: Mapping[str, GetMetaDataResponseHeader],
    reasons: Mapping[str, str],
) -> tuple[Controller, ...]:
    """Return the controllers of a group; the answers of the others name one that is down."""
    found = [controller(addr, answers.get(addr), reasons.get(addr)) for addr in addrs]
    peers = next((answers[addr].peers for addr in addrs if addr in answers), "")
    return tuple(
        each if each.is_up else replace(each, name=name_in(peers, each.addr)) for each in found
    )


def groups_in(
    configs: Mapping[BrokerRef, Mapping[str, str]],
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the names of replica sets by the addresses of their controllers.

    A set whose brokers name different controllers belongs to the first broker's group.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    seen = set()
    for ref in sorted(configs):
        table = configs[ref]
        addrs = addrs_in(table.get(_ADDRS, "")) if table.get(_MODE, "").lower() == "true" else ()
        if not addrs or ref.name in seen or (addrs not in groups and len(groups) == GROUPS_MAX):
            continue
        seen.add(ref.name)
        groups.setdefault(addrs, []).append(ref.name)
    return {addrs: tuple(names) for addrs, names in groups.items()}


def addrs_in(text: str) -> tuple[str, ...]:
    """Return the usable addresses of `host:port;host:port`, in order, each once."""
    parts = (part.strip() for part in text.split(";", CONTROLLERS_MAX)[:CONTROLLERS_MAX])
    return tuple(sorted({part for part in parts if _ADDR.fullmatch(part)}))


def controller(
    addr: str, metadata: GetMetaDataResponseHeader | None, failure: str | None
) -> Controller:
    """Return the state of a controller from its answer or the reason of a missing one."""
    if metadata is None:
        return Controller(addr, None, "unknown", None, failure or "no answer")
    leader = metadata.controller_leader_address or None
    name = name_in(metadata.peers, addr)
    if name is None and metadata.is_leader:
        name = metadata.controller_leader_id
    return Controller(addr, name, "leader" if metadata.is_leader else "follower", leader, None)


def name_in(peers: str, addr: str) -> str | None:
    """Return the name of an address in `n0:host:port;n1:host:port`."""
    for peer in peers.split(";", CONTROLLERS_MAX)[:CONTROLLERS_MAX]:
        name, _colon, at = peer.strip().partition(":")
        if at == addr:
            return name
    return None


def reasons_by_addr(failures: Iterable[BrokerFailure]) -> dict[str, str]:
    """Return the reason of each address."""
    return {failure.addr: failure.reason for failure in failures}
