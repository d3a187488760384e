"""Topics as configured resources, with the pages and REST resources of `console.resources`."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

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
    create_form=TopicCreateForm,
    edit_form=TopicSettingsForm,
    create_serializer=TopicCreateSerializer,
    patch_serializer=TopicPatchSerializer,
    impact_serializer=TopicImpactSerializer,
    impact_body=impact_body,
)
