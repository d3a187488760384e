"""The gateway's memory of brokers in Django's database.

A database that does not answer must not hide the state of a cluster: errors are logged, and the
gateway continues with the brokers of this process.
"""

import logging
from collections.abc import Iterable

from django.db import DatabaseError
from django.db.models import F

from console.gateway import BrokerRef, KnownBroker
from console.gateway.engine.known_brokers import KNOWN_BROKERS_MAX
from console.services.clusters import models

log = logging.getLogger(__name__)

# Without these words PostgreSQL sorts a broker that never answered as the latest.
LATEST_FIRST = F("contact_ms").desc(nulls_last=True)
OLDEST_FIRST = F("contact_ms").asc(nulls_first=True)


class DatabaseMemory:
    """Implements `BrokerMemory` of `console.gateway.engine.known_brokers`."""

    def load(self, cluster: str) -> list[KnownBroker] | None:
        """Return the brokers with the latest contact first; None when the database fails."""
        rows = models.KnownBroker.objects.filter(cluster=cluster).order_by(LATEST_FIRST)
        try:
            return [
                KnownBroker(
                    BrokerRef(row.name, row.broker_id, row.addr),
                    row.cluster_name,
                    row.seen_ms,
                    row.contact_ms,
                )
                for row in rows[:KNOWN_BROKERS_MAX]
            ]
        except DatabaseError:
            log.warning("the known brokers of %s cannot be read", cluster, exc_info=True)
            return None

    def save(self, cluster: str, brokers: Iterable[KnownBroker]) -> None:
        rows = [
            models.KnownBroker(
                cluster=cluster,
                name=broker.ref.name,
                broker_id=broker.ref.id,
                addr=broker.ref.addr,
                cluster_name=broker.cluster_name,
                seen_ms=broker.seen_ms,
                contact_ms=broker.contact_ms,
            )
            for broker in brokers
        ]
        try:
            models.KnownBroker.objects.bulk_create(
                rows,
                update_conflicts=True,
                unique_fields=["cluster", "name", "broker_id"],
                update_fields=["addr", "cluster_name", "contact_ms"],
            )
            self._bound(cluster)
        except DatabaseError:
            log.warning("the known brokers of %s cannot be saved", cluster, exc_info=True)

    def forget(self, cluster: str, ref: BrokerRef) -> None:
        models.KnownBroker.objects.filter(cluster=cluster, name=ref.name, broker_id=ref.id).delete()

    def _bound(self, cluster: str) -> None:
        """Delete the rows beyond KNOWN_BROKERS_MAX, the oldest contact first."""
        rows = models.KnownBroker.objects.filter(cluster=cluster)
        excess = rows.count() - KNOWN_BROKERS_MAX
        if excess > 0:
            oldest = rows.order_by(OLDEST_FIRST).values_list("pk", flat=True)[:excess]
            models.KnownBroker.objects.filter(pk__in=list(oldest)).delete()
