"""Users as configured resources, with the pages and REST resources of `console.resources`."""

from dataclasses import asdict

from django.utils.translation import gettext_lazy as _

from console.areas.acl_users.forms import AclUserCreateForm, AclUserForm, PasswordForm
from console.areas.acl_users.serializers import (
    AclUserCreateSerializer,
    AclUserImpactSerializer,
    AclUserPatchSerializer,
    NewPasswordSerializer,
    PasswordBodySerializer,
)
from console.frame.access import Need
from console.gateway import Cluster
from console.gateway.acl_users.changes import (
    create_user,
    delete_user,
    differences,
    fields_of,
    new_config,
    new_password,
    set_password,
    settings_from,
    update_user,
    user_impact,
)
from console.gateway.acl_users.listing import user_settings
from console.resources.models import Kind
from console.resources.resource import Configs, Resource, Secret, Texts


def configs(cluster: Cluster, name: str) -> Configs:
    return cluster.ask(user_settings, name).value


ACL_USER = Resource(
    kind=Kind.ACL_USER,
    texts=Texts(
        list_title=_("Access control"),
        create_title=_("Create a user"),
        create=_("Create user"),
        created=_("User “%s” is created."),
        changed=_("User “%s” is changed."),
        delete=_("Delete user"),
        deleted=_("User “%s” is deleted."),
    ),
    configs=configs,
    impact=user_impact,
    create=create_user,
    new_config=new_config,
    update=update_user,
    delete=delete_user,
    differences=differences,
    fields_of=fields_of,
    settings_from=settings_from,
    create_form=AclUserCreateForm,
    edit_form=AclUserForm,
    create_serializer=AclUserCreateSerializer,
    patch_serializer=AclUserPatchSerializer,
    impact_serializer=AclUserImpactSerializer,
    impact_body=asdict,
    need=Need.ADMIN,
    secret=Secret(
        member="password",
        set=set_password,
        generate=new_password,
        form=PasswordForm,
        serializer=PasswordBodySerializer,
        new_serializer=NewPasswordSerializer,
        title=_("New password"),
        warning=_("Brokers refuse the old password at once. The change cannot be undone."),
        change=_("Change password"),
        changed=_("The password of “%s” is changed."),
        shown_once=_("The password of “%s” is shown only now. Copy it."),
    ),
)
