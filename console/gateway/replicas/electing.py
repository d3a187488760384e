"""The election of a master by an operator: what it would change, and the command."""

from dataclasses import dataclass
from typing import Any

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.changes import check_unchanged
from console.gateway.engine.answers import now_ms
from console.gateway.engine.errors import ClusterUnreachable, NotAllowedNow, NotFound
from console.gateway.engine.questions import command
from console.gateway.engine.session import ClusterSession
from console.gateway.replicas.listing import replica_sets
from console.gateway.replicas.model import Replica, ReplicaSet, ReplicaSets


@dataclass(frozen=True, slots=True)
class ElectionPlan:
    """What an election would change. `obstacle`: why the controllers would refuse; None: nothing
    known."""

    found: ReplicaSet
    candidate: Replica
    obstacle: Any

    @property
    def master(self) -> Replica | None:
        return self.found.master


@dataclass(frozen=True, slots=True)
class ElectionResult:
    """Master and epoch before and after an election."""

    name: str
    before_number: int | None
    before_addr: str | None
    before_epoch: int | None
    number: int | None
    addr: str | None
    epoch: int | None
    elected_ms: int


def plan_election(state: ReplicaSets, name: str, number: int) -> ElectionPlan:
    """Return the plan for a replica by its id at the controllers. Raises NotFound."""
    found = state.get(name)
    if found is None:
        raise NotFound(format_lazy(_("The cluster has no replica set “{name}”."), name=name))
    candidate = next((one for one in found.replicas if one.number == number), None)
    if candidate is None:
        raise NotFound(
            format_lazy(
                _("The replica set “{name}” has no replica {number}."), name=name, number=number
            )
        )
    return ElectionPlan(found, candidate, _obstacle(state, found, candidate))


def _obstacle(state: ReplicaSets, found: ReplicaSet, candidate: Replica) -> Any:
    if found.mode != "controllers":
        return _("The set has no controllers: fixed roles or a DLedger group choose the master.")
    group = state.group_of(found.name)
    if group is None or group.leader is None:
        return _("The controllers have no leader: a majority of them must run.")
    if not found.is_known:
        return _("The controllers do not know this replica set.")
    if candidate.role == "master":
        return _("This replica is the master.")
    if candidate.is_alive is False:
        return _("The controllers receive no heartbeats of this replica.")
    if not candidate.is_in_sync:
        return _("This replica is not in the sync-state set: acknowledged messages would be lost.")
    return None


@command()
async def elect_master(
    session: ClusterSession, name: str, number: int, expected_etag: str | None = None
) -> ElectionResult:
    """Ask the leading controller to make a replica the master.

    Raises NotAllowedNow with the reason for a replica that cannot be elected, and
    PreconditionFailed when master or sync-state set changed since the caller read `etag`.
    """
    session.answers.invalidate()
    state = (await session.ask(replica_sets)).value
    plan = plan_election(state, name, number)
    check_unchanged(expected_etag, plan.found.etag)
    if plan.obstacle is not None:
        raise NotAllowedNow(plan.obstacle)
    group = state.group_of(name)
    if group is None or group.leader is None:
        raise ClusterUnreachable(_("The controllers have no leader: a majority of them must run."))
    header, _body = await session.admin.elect_master(
        [group.leader.addr], plan.found.cluster_name, name, number
    )
    before = plan.master
    return ElectionResult(
        name,
        None if before is None else before.number,
        None if before is None else before.addr,
        plan.found.master_epoch,
        header.master_broker_id,
        header.master_address,
        header.master_epoch,
        now_ms(),
    )
