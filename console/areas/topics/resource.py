"""Topics as configured resources, with the pages and REST resources of `console.resources`."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

from console.areas.topics.forms import TopicCreateForm, TopicSettingsForm
from console.areas.topics.serializers import (
    TopicCreateSerializer,
    TopicImpactSerializer,
    TopicNumbersSerializer,
    TopicPatchSerializer,
)
from console.gateway import Cluster
from console.gateway.topics.changes import (
    TopicImpact,
    TopicSettings,
    create_topic,
    delete_topic,
    differences,
    new_config,
    settings_from,
    settings_of,
    topic_impact,
    update_topic,
)
from console.gateway.topics.listing import topic_detail
from console.gateway.topics.queue_safety import (
    CONFIRM,
    UnreadQueues,
    unread_queues,
    unread_when_new,
)
from console.resources.models import Kind
from console.resources.resource import Configs, Resource, Texts


def configs(cluster: Cluster, topic: str) -> Configs:
    return cluster.ask(topic_detail, topic).value.configs


def impact_body(impact: TopicImpact) -> Mapping[str, Any]:
    return {
        "numbers": TopicNumbersSerializer(impact.numbers).data,
        "brokers": impact.brokers,
        "queues": impact.queues,
        "online_groups": dict(impact.online_groups),
    }


CONFIRM_UNREAD_QUEUES = OpenApiParameter(
    CONFIRM,
    OpenApiTypes.BOOL,
    description="Accept queues that no consumer reads. Without the parameter, more write queues "
    "than read queues, and fewer read queues than queues with messages, are answered with 409.",
)


def new_risks(
    _name: str, settings: TopicSettings, brokers: Sequence[str]
) -> tuple[UnreadQueues, ...]:
    return unread_when_new(brokers, new_config("", settings))


TOPIC = Resource(
    kind=Kind.TOPIC,
    texts=Texts(
        list_title=_("Topics"),
        create_title=_("Create a topic"),
        create=_("Create topic"),
        created=_("Topic “%s” is created."),
        changed=_("Topic “%s” is changed."),
        delete=_("Delete topic"),
        deleted=_("Topic “%s” is deleted."),
    ),
    configs=configs,
    impact=topic_impact,
    create=create_topic,
    new_config=new_config,
    update=update_topic,
    delete=delete_topic,
    differences=differences,
    fields_of=settings_of,
    settings_from=settings_from,
    risks=unread_queues,
    new_risks=new_risks,
    confirm=CONFIRM_UNREAD_QUEUES,
    create_form=TopicCreateForm,
    edit_form=TopicSettingsForm,
    create_serializer=TopicCreateSerializer,
    patch_serializer=TopicPatchSerializer,
    impact_serializer=TopicImpactSerializer,
    impact_body=impact_body,
)
