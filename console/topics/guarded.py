"""Topics: protection, undo, and deleting several at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from console.clusters.models import Kind
from console.gateway import Cluster
from console.gateway.changes import BrokerOutcome, FieldChange
from console.gateway.topic_changes import (
    delete_topic,
    settings_from,
    settings_of,
    topic_impact,
    update_topic,
)
from console.gateway.topics import topic_detail
from console.guarded import (
    BulkDeletePage,
    BulkDeleteResource,
    ProtectionResource,
    ProtectPage,
    UndoPage,
)


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
