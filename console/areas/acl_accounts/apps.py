"""The area `acl_accounts`."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class AclAccountsConfig(AreaConfig):
    name = "console.areas.acl_accounts"
    label = "acl_accounts"
    resource = "acl"
    name_arguments = ("acl_account", "name")
    title = _("Accounts (ACL 1.0)")
    icon = "shield-lock"
    need = "admin"
    parent = "acl_users"
    tab = _("Accounts and white list (ACL 1.0)")
