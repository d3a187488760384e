"""Groups: protection, undo, and deleting several at once."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from console.gateway import Cluster
from console.gateway.changes import BrokerOutcome, FieldChange
from console.gateway.groups.changes import (
    FIELDS,
    GroupSettings,
    delete_group,
    group_impact,
    update_group,
)
from console.gateway.groups.listing import group_settings
from console.resources.guarded import (
    BulkDeletePage,
    BulkDeleteResource,
    ProtectionResource,
    ProtectPage,
    UndoPage,
)
from console.resources.models import Kind


class GroupProtection(ProtectionResource):
    kind = Kind.GROUP
    actions = {"put": "group.protect", "delete": "group.unprotect"}


class GroupProtectPage(ProtectPage):
    kind = Kind.GROUP
    actions = {"post": "group.protect"}


class GroupUndoPage(UndoPage):
    kind = Kind.GROUP
    actions = {"post": "group.undo"}

    def present(self, name: str) -> dict[tuple[str, str], Any]:
        held = self.cluster.ask(group_settings, name).value
        return {
            (ref.name, field): getattr(config, field) for ref, config in held for field in FIELDS
        }

    def restore(self, name: str, lines: Sequence[FieldChange]) -> Sequence[BrokerOutcome]:
        outcomes: list[BrokerOutcome] = []
        ordered = sorted(lines, key=lambda line: line.broker)
        for broker, of_broker in groupby(ordered, key=lambda line: line.broker):
            before = GroupSettings(**{line.field: line.before for line in of_broker})
            outcomes += self.cluster.do(update_group, name, before, [broker])
        return outcomes


class GroupDeleter:
    kind = Kind.GROUP
    actions = {"post": "group.delete-many"}
    cluster: Cluster

    def clients(self, name: str) -> int:
        return self.cluster.ask(group_impact, name).value.clients

    def remove(self, name: str) -> Sequence[BrokerOutcome]:
        return self.cluster.do(delete_group, name)


class GroupBulkDelete(GroupDeleter, BulkDeleteResource):
    pass


class GroupBulkDeletePage(GroupDeleter, BulkDeletePage):
    pass
