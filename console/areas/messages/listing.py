"""The columns of a table of messages. Tables of several topics show the topic as well."""

from typing import Any, Final

from django.utils.translation import gettext_lazy as _

from console.frame.tables import Column, Columns

COLUMNS: Final[Columns[Any]] = Columns(
    Column("stored", _("Stored at")),
    Column("id", _("Message ID")),
    Column("tag", _("Tag")),
    Column("keys", _("Keys")),
    Column("queue", _("Queue · offset"), hint=_("Broker:queue:offset")),
    Column("body", _("Body")),
)
#: Name of the list in the browser's memory; all tables of messages share one choice.
TABLE: Final = "messages"
