"""The area `acl_users`."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class AclUsersConfig(AreaConfig):
    name = "console.areas.acl_users"
    label = "acl_users"
    resource = "acl"
    name_arguments = ("acl_user", "name")
    title = _("Access control")
    icon = "shield-lock"
    need = "admin"
    tab = _("Users and entries (ACL 2.0)")
