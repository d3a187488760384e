"""Topics: protection, undo, and deleting several at once."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.views import ClusterResource
from console.areas.topics.serializers import TopicPatchSerializer
from console.audit.recording import audited
from console.gateway import Cluster
from console.gateway.changes import BrokerOutcome, FieldChange, chosen_of
from console.gateway.topics.changes import (
    delete_topic,
    differences,
    settings_from,
    settings_of,
    topic_impact,
    update_topic,
)
from console.gateway.topics.listing import topic_detail
from console.resources import bulk, history
from console.resources.guarded import (
    BulkDeletePage,
    BulkDeleteResource,
    ProtectionResource,
    ProtectPage,
    UndoPage,
)
from console.resources.models import Kind


class TopicProtection(ProtectionResource):
    kind = Kind.TOPIC
    actions = {"put": "topic.protect", "delete": "topic.unprotect"}


class TopicProtectPage(ProtectPage):
    kind = Kind.TOPIC
    actions = {"post": "topic.protect"}


class TopicUndoPage(UndoPage):
    kind = Kind.TOPIC
    actions = {"post": "topic.undo"}

    def present(self, name: str) -> dict[tuple[str, str], Any]:
        detail = self.cluster.ask(topic_detail, name).value
        return {
            (ref.name, field): value
            for ref, config in detail.configs
            for field, value in settings_of(config).items()
        }

    def restore(self, name: str, lines: Sequence[FieldChange]) -> Sequence[BrokerOutcome]:
        outcomes: list[BrokerOutcome] = []
        ordered = sorted(lines, key=lambda line: line.broker)
        for broker, of_broker in groupby(ordered, key=lambda line: line.broker):
            before = settings_from({line.field: line.before for line in of_broker})
            outcomes += self.cluster.do(update_topic, name, before, [broker])
        return outcomes


class TopicDeleter:
    kind = Kind.TOPIC
    actions = {"post": "topic.delete-many"}
    cluster: Cluster

    def clients(self, name: str) -> int:
        return self.cluster.ask(topic_impact, name).value.clients

    def remove(self, name: str) -> Sequence[BrokerOutcome]:
        return self.cluster.do(delete_topic, name)


class TopicBulkDelete(TopicDeleter, BulkDeleteResource):
    pass


class TopicBulkDeletePage(TopicDeleter, BulkDeletePage):
    pass


class TopicsPatchSerializer(bulk.NamesSerializer, TopicPatchSerializer):
    """The same settings for several topics."""


class TopicBulkUpdate(ClusterResource):
    """Gives several topics the same settings, with a result for each."""

    actions = {"post": "topic.update-many"}

    @extend_schema(
        request=TopicsPatchSerializer,
        responses={200: bulk.BulkSerializer, 207: bulk.BulkSerializer},
    )
    def post(self, request: Request, cluster: str) -> Response:
        """Change several; a dry run tells which could not be changed."""
        form = TopicsPatchSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        given = form.validated_data
        names, wanted = given["names"], form.settings()
        if given["dry_run"]:
            return Response(bulk.body(bulk.would(bulk.each(names, self.look))))

        def one(name: str) -> Sequence[BrokerOutcome]:
            held = self.cluster.ask(topic_detail, name).value.configs
            lines = differences(chosen_of(held, given.get("brokers")), wanted)
            outcomes = self.cluster.do(update_topic, name, wanted, given.get("brokers"))
            history.keep(request.user, cluster, Kind.TOPIC, name, lines, outcomes)
            return outcomes

        target = ", ".join(dict.fromkeys(names))
        with audited(request, "topic.update-many", cluster=cluster, target=target) as entry:
            results = bulk.each(names, one)
            entry.after = wanted
            entry.outcomes(results)
        return Response(bulk.body(results), bulk.status(results))

    def look(self, name: str) -> Sequence[BrokerOutcome]:
        """Nothing is done; NotThere without the topic."""
        self.cluster.ask(topic_detail, name)
        return ()
