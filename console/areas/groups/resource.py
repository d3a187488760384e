"""Groups as configured resources, with the pages and REST resources of `console.resources`."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.utils.translation import gettext_lazy as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

from console.areas.groups.forms import GroupCreateForm, GroupDeleteForm, GroupSettingsForm
from console.areas.groups.serializers import (
    GroupCreateSerializer,
    GroupImpactSerializer,
    GroupPatchSerializer,
)
from console.gateway import Cluster
from console.gateway.groups.changes import (
    FIELDS,
    GroupSettings,
    create_group,
    delete_group,
    differences,
    group_impact,
    new_config,
    update_group,
)
from console.gateway.groups.listing import group_settings
from console.resources.models import Kind
from console.resources.resource import Configs, Resource, Texts

DEAD_LETTERS = OpenApiParameter(
    "dead_letters", OpenApiTypes.BOOL, description="Delete the group's dead letters too."
)


def configs(cluster: Cluster, group: str) -> Configs:
    return cluster.ask(group_settings, group).value


def fields_of(config: Any) -> Mapping[str, Any]:
    return {field: getattr(config, field) for field in FIELDS}


def settings_from(fields: Mapping[str, Any]) -> GroupSettings:
    return GroupSettings(**fields)


GROUP = Resource(
    kind=Kind.GROUP,
    texts=Texts(
        list_title=_("Groups"),
        create_title=_("Create a group"),
        create=_("Create group"),
        created=_("Group “%s” is created."),
        changed=_("Group “%s” is changed."),
        delete=_("Delete group"),
        deleted=_("Group “%s” is deleted."),
    ),
    configs=configs,
    impact=group_impact,
    create=create_group,
    new_config=new_config,
    update=update_group,
    delete=delete_group,
    differences=differences,
    fields_of=fields_of,
    settings_from=settings_from,
    create_form=GroupCreateForm,
    edit_form=GroupSettingsForm,
    delete_form=GroupDeleteForm,
    create_serializer=GroupCreateSerializer,
    patch_serializer=GroupPatchSerializer,
    impact_serializer=GroupImpactSerializer,
    impact_body=asdict,
    delete_flags=(DEAD_LETTERS,),
)
