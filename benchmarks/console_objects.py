"""The objects whose pages `make bench-console` measures: the first of each kind that the API lists.

A cluster without objects of a kind has no page of such an object: that name is absent.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

CLUSTER: Final = "clusters/local"

Ask = Callable[[str], Any]


class Source(NamedTuple):
    """A list of the API: an address, where the rows are, and the field of an object's name."""

    path: str
    field: str
    rows: str = "items"


#: Lists by the name of their object; `{topic}` and other names are objects of before.
SOURCES: Final[Mapping[str, Source]] = {
    "client": Source(f"{CLUSTER}/groups/{{group}}/clients", "client_id", "clients"),
    "offset_msg_id": Source(f"{CLUSTER}/messages?topic={{topic}}", "offset_msg_id"),
    "msg_id": Source(f"{CLUSTER}/messages?topic={{topic}}", "msg_id"),
    "letter": Source(f"{CLUSTER}/dlq/{{group}}/messages", "offset_msg_id"),
    "replay": Source(f"{CLUSTER}/dlq/{{group}}/replays", "id"),
    "reset": Source(f"{CLUSTER}/groups/{{group}}/offsets/resets", "id"),
    "acl_user": Source(f"{CLUSTER}/acl-users?q=user-", "name"),
    "acl_account": Source(f"{CLUSTER}/acl-accounts", "name"),
    "job": Source(f"{CLUSTER}/jobs", "id"),
    "file_job": Source(f"{CLUSTER}/jobs?kind=export", "id"),
    "file": Source(f"{CLUSTER}/jobs/{{file_job}}/files", "name"),
    "alarm": Source(f"{CLUSTER}/alarms", "id"),
    "alarm_rule": Source(f"{CLUSTER}/alarm-rules", "id"),
    "receiver": Source(f"{CLUSTER}/alarm-receivers", "id"),
    "masking_rule": Source(f"{CLUSTER}/masking-rules", "id"),
    "schema": Source(f"{CLUSTER}/body-schemas", "name"),
    "body_rule": Source(f"{CLUSTER}/body-rules", "number"),
    "custom_role": Source("roles?q=role-", "name"),
    "audit_row": Source("audit", "id"),
}


def find_objects(ask: Ask, topic: str, group: str) -> dict[str, str]:
    """Return an object of each kind that exists; `ask` returns the JSON of an API path."""
    found = {"topic": topic, "group": group}
    for name, source in SOURCES.items():
        try:
            path = source.path.format_map(found)
        except KeyError:  # the object of before does not exist
            continue
        rows = (ask(path) or {}).get(source.rows)
        if rows and source.field in rows[0]:
            found[name] = str(rows[0][source.field])
    return found
