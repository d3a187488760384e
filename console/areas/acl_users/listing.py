"""Columns of the list of users, shared by page and API."""

from django.utils.translation import gettext_lazy as _

from console.frame.tables import Column, Columns
from console.gateway.acl_users.listing import AclUserRow

COLUMNS: Columns[AclUserRow] = Columns(
    Column("name", _("User"), lambda row: row.name),
    Column("user_type", _("Type"), lambda row: row.user_type),
    Column("user_status", _("Status"), lambda row: row.user_status),
    Column("entries", _("Entries"), lambda row: row.entries, numeric=True),
    Column("brokers", _("Brokers")),
)
