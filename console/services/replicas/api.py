"""REST resources of replica sets: state, controllers, role changes, elections."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.flags import DRY_RUN, read_flag
from console.api.views import IF_MATCH, ClusterResource, expected_etag, told_with
from console.frame.access import Need, needs
from console.gateway import NotAllowedNow, now_ms
from console.gateway.changes import check_unchanged
from console.gateway.replicas.electing import ElectionPlan, plan_election
from console.gateway.replicas.listing import replica_sets, timed_replica_sets
from console.services.replicas.elections import ACTION, elect
from console.services.replicas.reading import read_records
from console.services.replicas.serializers import (
    ControllerListSerializer,
    ElectionPostSerializer,
    ElectionSerializer,
    ReplicaSetAnswerSerializer,
    ReplicaSetListSerializer,
    RoleChangeListSerializer,
)
from console.services.replicas.views import find_set

#: Maximum number of role changes of an answer.
CHANGES_MAX = 500


class ReplicaSetList(ClusterResource):
    @extend_schema(responses=ReplicaSetListSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """The replicas of each broker name: role, lag, sync-state set, epochs."""
        answer = self.cluster.ask(timed_replica_sets)
        body = {"items": answer.value.sets, **told_with(answer)}
        return Response(ReplicaSetListSerializer(body).data)


class ReplicaSetOne(ClusterResource):
    @extend_schema(responses=ReplicaSetAnswerSerializer)
    def get(self, request: Request, cluster: str, broker: str) -> Response:
        """The replicas of one broker name. `ETag` identifies master and sync-state set."""
        answer = self.cluster.ask(timed_replica_sets)
        found = find_set(answer, broker)
        body = ReplicaSetAnswerSerializer({"replica_set": found, **told_with(answer)}).data
        return Response(body, headers={"ETag": f'"{found.etag}"'})


class ControllerList(ClusterResource):
    @extend_schema(responses=ControllerListSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """The controllers that the brokers' settings name, and their leaders."""
        answer = self.cluster.ask(replica_sets)
        body = {"items": answer.value.groups, **told_with(answer)}
        return Response(ControllerListSerializer(body).data)


class RoleChangeList(ClusterResource):
    @extend_schema(
        parameters=[
            OpenApiParameter(
                "limit",
                OpenApiTypes.INT,
                description=f"Maximum number of changes, 1 to {CHANGES_MAX} (default).",
            )
        ],
        responses=RoleChangeListSerializer,
    )
    def get(self, request: Request, cluster: str, broker: str) -> Response:
        """The masters of a replica set over time, newest first, as the worker saw them."""
        answer = self.cluster.ask(replica_sets)
        find_set(answer, broker)
        limit = _limit(request)
        record = read_records(cluster, [broker], now_ms())[broker]
        body = {
            "items": list(reversed(record.changes))[:limit],
            "total": len(record.changes),
            "watched_since_ms": record.watched_since_ms,
            "watched": [{"begin_ms": begin, "end_ms": end} for begin, end in record.spans],
        }
        return Response(RoleChangeListSerializer(body).data)


class Election(ClusterResource):
    actions = {"post": ACTION}

    @extend_schema(
        parameters=[IF_MATCH, DRY_RUN],
        request=ElectionPostSerializer,
        responses=ElectionSerializer,
    )
    @needs(Need.ADMIN)
    def post(self, request: Request, cluster: str, broker: str) -> Response:
        """Make a replica the master of its set; 409 with the reason when this is not possible.

        The response of a dry run has the consequences. The master of before becomes a slave; sends
        to the set fail until the new master is registered, about a second.
        """
        form = ElectionPostSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        state = self.cluster.ask(replica_sets).value
        plan = plan_election(state, broker, form.validated_data["id"])
        etag = expected_etag(request)
        if read_flag(request, "dry_run"):
            check_unchanged(etag, plan.found.etag)
            if plan.obstacle is not None:
                raise NotAllowedNow(plan.obstacle)
            return Response(ElectionSerializer(_body(plan, dry_run=True)).data)
        result = elect(request, self.cluster, plan, etag)
        after = {"id": result.number, "addr": result.addr, "epoch": result.epoch}
        return Response(ElectionSerializer(_body(plan, dry_run=False) | {"after": after}).data)


def _body(plan: ElectionPlan, *, dry_run: bool) -> dict[str, Any]:
    master, candidate = plan.master, plan.candidate
    return {
        "name": plan.found.name,
        "dry_run": dry_run,
        "in_sync": candidate.is_in_sync,
        "lag_bytes": candidate.lag_bytes,
        "before": {
            "id": None if master is None else master.number,
            "addr": None if master is None else master.addr,
            "epoch": plan.found.master_epoch,
        },
        "after": {"id": candidate.number, "addr": candidate.addr, "epoch": None},
    }


def _limit(request: Request) -> int:
    field = serializers.IntegerField(min_value=1, max_value=CHANGES_MAX)
    try:
        return int(field.run_validation(request.query_params.get("limit", str(CHANGES_MAX))))
    except serializers.ValidationError as wrong:
        raise serializers.ValidationError({"limit": wrong.detail}) from None
