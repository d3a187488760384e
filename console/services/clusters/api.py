"""REST resources of the area `clusters`."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.bare_lists import PARAMETERS, Row, answer, page_or_array
from console.api.serializers import AnsweredSerializer, FailureSerializer
from console.api.views import ClusterResource, DeclaredParameters, told_with
from console.frame.pages import readable_clusters
from console.frame.permissions import Scope
from console.gateway.brokers.listing import broker_details, broker_rows, name_servers
from console.gateway.overview import overview
from console.services.clusters.forgetting import Forgetting
from console.web.live.sampler import sample_of


class ClusterNameSerializer(serializers.Serializer[Any]):
    """A cluster in the settings of the console."""

    name = serializers.CharField()
    namesrv_addr = serializers.CharField()


class TodayBeginsField(serializers.ChoiceField):
    """The beginning of `in_today` and `out_today`."""

    def __init__(self, *, mixed: bool = False) -> None:
        super().__init__(
            choices=["midnight", "start", "mixed"] if mixed else ["midnight", "start"],
            allow_null=True,
            help_text="What the totals of today count from: midnight in the broker's time zone, or "
            "the start of a broker that started later.",
        )


class LoadSerializer(serializers.Serializer[Any]):
    """Sums over the brokers; null when no broker reports the metric."""

    in_rate = serializers.FloatField(
        allow_null=True, help_text="Produce rate, messages per second."
    )
    out_rate = serializers.FloatField(
        allow_null=True, help_text="Consume rate, messages per second."
    )
    in_today = serializers.IntegerField(allow_null=True)
    out_today = serializers.IntegerField(allow_null=True)
    today_begins = TodayBeginsField(mixed=True)
    in_total = serializers.IntegerField(allow_null=True, help_text="Since the brokers' start.")
    out_total = serializers.IntegerField(allow_null=True)
    stored_bytes = serializers.IntegerField(allow_null=True)
    disk_ratio = serializers.FloatField(
        allow_null=True, help_text="Usage of the fullest disk, 0 to 1."
    )


class BrokerSerializer(serializers.Serializer[Any]):
    """One broker process."""

    name = serializers.CharField(source="ref.name")
    id = serializers.IntegerField(source="ref.id", help_text="0 is the master.")
    addr = serializers.CharField(source="ref.addr")
    host = serializers.CharField(
        source="ref.host",
        help_text="Host of the address: the brokers of one machine have the same host.",
    )
    role = serializers.ChoiceField(choices=["master", "slave"])
    cluster_name = serializers.CharField(help_text="The setting `brokerClusterName`.")
    state = serializers.ChoiceField(
        choices=["up", "down", "unregistered"],
        help_text="`down`: the broker does not answer, and the metrics are the last known ones. "
        "`unregistered`: the broker answers, and no name server lists the broker.",
    )
    reason = serializers.CharField(allow_null=True, help_text="Why the broker is down.")
    contact_ms = serializers.IntegerField(
        allow_null=True, help_text="Time of the last answer; null: never."
    )
    as_of_ms = serializers.IntegerField(
        allow_null=True, help_text="Time of the metrics; null: no metrics."
    )
    version = serializers.CharField(allow_null=True)
    started_ms = serializers.IntegerField(allow_null=True)
    in_rate = serializers.FloatField(allow_null=True)
    out_rate = serializers.FloatField(allow_null=True)
    in_today = serializers.IntegerField(allow_null=True)
    out_today = serializers.IntegerField(allow_null=True)
    today_begins = TodayBeginsField()
    today_from_ms = serializers.IntegerField(
        allow_null=True, help_text="Null when the broker does not report its last midnight."
    )
    in_total = serializers.IntegerField(allow_null=True)
    out_total = serializers.IntegerField(allow_null=True)
    disk_ratio = serializers.FloatField(allow_null=True)
    disk_total = serializers.IntegerField(allow_null=True)
    disk_free = serializers.IntegerField(allow_null=True)
    stored_bytes = serializers.IntegerField(allow_null=True)
    oldest_message_ms = serializers.IntegerField(allow_null=True)


class DeadLettersSerializer(serializers.Serializer[Any]):
    """The dead letters of one group."""

    group = serializers.CharField()
    count = serializers.IntegerField()
    newest_ms = serializers.IntegerField(allow_null=True)


class ClusterSerializer(AnsweredSerializer):
    """A cluster at a glance."""

    load = LoadSerializer()
    topic_count = serializers.IntegerField(
        allow_null=True,
        help_text="All topics, with system topics. Null when no broker has ever answered.",
    )
    own_topic_count = serializers.IntegerField(
        allow_null=True, help_text="Without system, retry and dead-letter topics."
    )
    group_count = serializers.IntegerField(allow_null=True)
    unread_topics = serializers.ListField(
        child=serializers.CharField(),
        help_text="Topics with more write queues than read queues: no consumer reads the rest.",
    )
    unseen_topics = serializers.IntegerField(
        help_text="Further topics of this kind, whose names the permissions of the caller do not "
        "include."
    )
    total_lag = serializers.IntegerField(allow_null=True)
    dead_letter_count = serializers.IntegerField(
        allow_null=True, help_text="Null when the cluster has too many groups to query."
    )
    dead_letters = DeadLettersSerializer(many=True, allow_null=True)
    unseen_dead_letter_groups = serializers.IntegerField(
        help_text="Further groups with dead letters, whose names the permissions of the caller do "
        "not include; `dead_letter_count` includes their dead letters."
    )
    brokers = BrokerSerializer(many=True)


class BrokerListSerializer(AnsweredSerializer):
    items = BrokerSerializer(many=True)


class BrokerProcessSerializer(serializers.Serializer[Any]):
    """A broker process: runtime table and settings, with the keys and values of RocketMQ."""

    broker = BrokerSerializer(source="row")
    runtime = serializers.DictField(source="table", child=serializers.CharField())
    settings = serializers.DictField(child=serializers.CharField())


class BrokerDetailSerializer(AnsweredSerializer):
    processes = BrokerProcessSerializer(many=True)


class NameServerSerializer(serializers.Serializer[Any]):
    addr = serializers.CharField()
    settings = serializers.DictField(child=serializers.CharField())
    failure = serializers.CharField(allow_null=True)
    certificate_expiry_ms = serializers.IntegerField(
        allow_null=True,
        help_text="End of validity of the TLS certificate; null: unknown, or the console connects "
        "without TLS.",
    )
    certificate = serializers.ChoiceField(
        choices=["valid", "expires-soon", "expired"],
        allow_null=True,
        help_text="expires-soon: within 30 days.",
    )


class NameServerListSerializer(AnsweredSerializer):
    items = NameServerSerializer(many=True)


class BrokerLoadSerializer(serializers.Serializer[Any]):
    addr = serializers.CharField()
    master = serializers.BooleanField()
    state = serializers.CharField()
    in_rate = serializers.FloatField(allow_null=True)
    out_rate = serializers.FloatField(allow_null=True)
    in_today = serializers.IntegerField(allow_null=True)
    out_today = serializers.IntegerField(allow_null=True)
    today_begins = TodayBeginsField()
    disk_ratio = serializers.FloatField(allow_null=True)


class SampleSerializer(serializers.Serializer[Any]):
    """One sample of the live feed."""

    type = serializers.CharField()
    at_ms = serializers.IntegerField()
    state = serializers.ChoiceField(
        choices=["fresh", "partly", "stale"],
        help_text="`fresh`: every broker answered. `partly`: some brokers are down. `stale`: no "
        "broker answered.",
    )
    fresh_at_ms = serializers.IntegerField(
        allow_null=True, help_text="Time of the latest answer of a broker; null: never."
    )
    in_rate = serializers.FloatField(allow_null=True)
    out_rate = serializers.FloatField(allow_null=True)
    in_today = serializers.IntegerField(allow_null=True)
    out_today = serializers.IntegerField(allow_null=True)
    today_begins = TodayBeginsField(mixed=True)
    stored_bytes = serializers.IntegerField(allow_null=True)
    brokers = BrokerLoadSerializer(many=True)
    failures = FailureSerializer(many=True)


class ClusterList(DeclaredParameters):
    """The clusters in the settings of the console; the list sends no request to a cluster."""

    access_clusters = Scope.SOME

    @extend_schema(parameters=PARAMETERS, responses=page_or_array(ClusterNameSerializer))
    def get(self, request: Request) -> Response:
        clusters = readable_clusters(request.user)
        rows = [Row(each.name, dict(ClusterNameSerializer(each).data)) for each in clusters]
        return answer(request, rows)


class ClusterOne(ClusterResource):
    @extend_schema(responses=ClusterSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """A cluster at a glance: load, counts, brokers."""
        return self.answered(self.cluster.ask(overview), ClusterSerializer)


class LoadNow(ClusterResource):
    @extend_schema(responses=SampleSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """One sample of the live feed, for browsers without a WebSocket."""
        answer = self.cluster.ask(broker_rows)
        return Response(sample_of(answer, {}))


class BrokerList(ClusterResource):
    @extend_schema(responses=BrokerListSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """All broker processes with rates, disk and counts."""
        answer = self.cluster.ask(broker_rows)
        items = BrokerSerializer(answer.value, many=True).data
        return Response({"items": items, **told_with(answer)})


class BrokerOne(Forgetting):
    @extend_schema(responses=BrokerDetailSerializer)
    def get(self, request: Request, cluster: str, broker: str) -> Response:
        """The processes of one broker name, master first."""
        answer = self.cluster.ask(broker_details, broker)
        processes = BrokerProcessSerializer(answer.value, many=True).data
        return Response({"processes": processes, **told_with(answer)})


class NameServerList(ClusterResource):
    @extend_schema(responses=NameServerListSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """All configured name servers; `failure` is the reason of a missing answer."""
        answer = self.cluster.ask(name_servers)
        items = NameServerSerializer(answer.value, many=True).data
        return Response({"items": items, **told_with(answer)})
