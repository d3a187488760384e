"""Elections by operators, with audit rows before and after."""

from django.http import HttpRequest
from rest_framework.request import Request

from console.audit.recording import audited
from console.gateway import Cluster
from console.gateway.replicas.electing import ElectionPlan, ElectionResult, elect_master
from console.services.replicas.watching import record_election

ACTION = "replica.elect"


def elect(
    request: HttpRequest | Request, cluster: Cluster, plan: ElectionPlan, etag: str | None
) -> ElectionResult:
    """Elect the candidate of a plan. Raises GatewayError as `elect_master`."""
    found, number = plan.found, plan.candidate.number
    assert number is not None  # the plan found the candidate by its number
    before = {
        "master": None if plan.master is None else plan.master.addr,
        "epoch": found.master_epoch,
        "candidate": number,
        "in_sync": plan.candidate.is_in_sync,
        "lag_bytes": plan.candidate.lag_bytes,
    }
    with audited(request, ACTION, cluster=cluster.name, target=found.name, before=before) as entry:
        result = cluster.do(elect_master, found.name, number, etag)
        entry.after = {"master": result.addr, "epoch": result.epoch, "id": result.number}
    record_election(cluster.name, result, request.user.get_username())
    return result
