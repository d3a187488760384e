"""Accounts and the white list, with the pages and REST resources of `console.resources`."""

from dataclasses import asdict

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from console.areas.acl_accounts.forms import (
    AclAccountCreateForm,
    AclAccountForm,
    SecretKeyForm,
    WhiteListForm,
)
from console.areas.acl_accounts.serializers import (
    AclAccountCreateSerializer,
    AclAccountImpactSerializer,
    AclAccountPatchSerializer,
    NewSecretKeySerializer,
    SecretKeyBodySerializer,
    WhiteListPatchSerializer,
)
from console.frame.access import Need
from console.gateway import Cluster
from console.gateway.acl_accounts import white_list
from console.gateway.acl_accounts.changes import (
    account_impact,
    create_account,
    delete_account,
    differences,
    new_config,
    new_secret_key,
    set_secret_key,
    settings_from,
    update_account,
)
from console.gateway.acl_accounts.listing import account_brokers, account_settings, fields_of
from console.resources.models import Kind
from console.resources.resource import Configs, Editable, Resource, Secret, Texts


def configs(cluster: Cluster, name: str) -> Configs:
    return cluster.ask(account_settings, name).value


ACL_ACCOUNT = Resource(
    kind=Kind.ACL_ACCOUNT,
    texts=Texts(
        list_title=_("Accounts (ACL 1.0)"),
        create_title=_("Create an account"),
        create=_("Create account"),
        created=_("Account “%s” is created."),
        changed=_("Account “%s” is changed."),
        delete=_("Delete account"),
        deleted=_("Account “%s” is deleted."),
    ),
    configs=configs,
    impact=account_impact,
    brokers=account_brokers,
    create=create_account,
    new_config=new_config,
    update=update_account,
    delete=delete_account,
    differences=differences,
    fields_of=fields_of,
    settings_from=settings_from,
    create_form=AclAccountCreateForm,
    edit_form=AclAccountForm,
    create_serializer=AclAccountCreateSerializer,
    patch_serializer=AclAccountPatchSerializer,
    impact_serializer=AclAccountImpactSerializer,
    impact_body=asdict,
    need=Need.ADMIN,
    secret=Secret(
        member="secret_key",
        set=set_secret_key,
        generate=new_secret_key,
        form=SecretKeyForm,
        serializer=SecretKeyBodySerializer,
        new_serializer=NewSecretKeySerializer,
        title=_("New secret key"),
        warning=_("Brokers refuse the old secret key at once. The change cannot be undone."),
        change=_("Change secret key"),
        changed=_("The secret key of “%s” is changed."),
        shown_once=_("The secret key of “%s” is shown only now. Copy it."),
    ),
)


class _WhiteList(Editable):
    """The only object of the kind: its page is the list of accounts, and the URLs have no name."""

    __slots__ = ()

    def url(self, cluster: str, name: str, page: str = "detail") -> str:
        if page == "detail":
            return ACL_ACCOUNT.list_url(cluster)
        return reverse(f"{self.namespace}:{page}", args=[cluster])

    def list_url(self, cluster: str) -> str:
        return ACL_ACCOUNT.list_url(cluster)

    @property
    def namespace(self) -> str:
        return f"{ACL_ACCOUNT.namespace}:white_list"


def white_list_configs(cluster: Cluster, name: str) -> Configs:
    return cluster.ask(white_list.white_list_settings).value


WHITE_LIST = _WhiteList(
    kind=Kind.ACL_WHITE_LIST,
    texts=Texts(list_title=_("Accounts (ACL 1.0)"), changed=_("“%s” is changed.")),
    configs=white_list_configs,
    update=white_list.update_white_list,
    differences=white_list.differences,
    fields_of=white_list.fields_of,
    settings_from=white_list.settings_from,
    edit_form=WhiteListForm,
    patch_serializer=WhiteListPatchSerializer,
    need=Need.ADMIN,
)
#: The URL arguments of the white list.
WHITE_LIST_NAME = {WHITE_LIST.argument: white_list.FIELD}
