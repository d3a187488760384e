"""Columns of the list of accounts, shared by page and API."""

from django.utils.translation import gettext_lazy as _

from console.frame.tables import Column, Columns
from console.gateway.acl_accounts.listing import AclAccountRow

COLUMNS: Columns[AclAccountRow] = Columns(
    Column("name", _("Access key"), lambda row: row.name),
    Column("admin", _("Administrator"), lambda row: row.admin),
    Column("default_topic_perm", _("Default for topics"), lambda row: row.default_topic_perm),
    Column("default_group_perm", _("Default for groups"), lambda row: row.default_group_perm),
    Column("permissions", _("Permissions"), lambda row: row.permissions, numeric=True),
    Column("brokers", _("Brokers")),
)
