"""The subscription groups of a broker: subscriptionGroup.json.

    {"dataVersion":{…},"subscriptionGroupTable":{group: SubscriptionGroupConfig}}

autoCreateSubscriptionGroup allows the creation of groups on first use. Configurations are
replaced, never mutated. Compatible with RocketMQ's SubscriptionGroupManager.
"""

from core_broker.errors import ClientError
from core_broker.message.topics import SYSTEM_GROUPS, is_system_group, validate_group
from core_broker.remoting.bodies import (
    DataVersion,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
    decode_body,
    encode_body,
)

#: Maximum groups, so that forged heartbeats cannot exhaust the memory.
GROUPS_MAX = 100_000


class GroupTable:
    """All subscription groups, and the version of the table."""

    def __init__(self) -> None:
        self._groups = {name: SubscriptionGroupConfig(group_name=name) for name in SYSTEM_GROUPS}
        self.version = DataVersion()
        #: Look-up by name; None for a missing group.
        self.get = self._groups.get

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def names(self) -> list[str]:
        """The names of all groups."""
        return list(self._groups)

    def obtain(
        self, name: str, *, may_create: bool, now_ms: int
    ) -> tuple[SubscriptionGroupConfig | None, bool]:
        """The group, created if missing and allowed, else None; and True if it was created now."""
        group = self._groups.get(name)
        if group is not None:
            return group, False
        if not (may_create or is_system_group(name)) or len(self._groups) >= GROUPS_MAX:
            return None, False
        try:
            validate_group(name)
        except ClientError:
            return None, False
        group = SubscriptionGroupConfig(group_name=name)
        self.put(group, now_ms)
        return group, True

    def put(self, group: SubscriptionGroupConfig, now_ms: int) -> None:
        """Add a group, or replace the group with the same name."""
        self._groups[group.group_name] = group
        self.version = self.version.next(now_ms)

    def remove(self, name: str, now_ms: int) -> bool:
        """Delete a group; False when the group does not exist."""
        if self._groups.pop(name, None) is None:
            return False
        self.version = self.version.next(now_ms)
        return True

    def encode(self) -> bytes:
        """The table in the format of the file and of the answer to code 201."""
        return encode_body(
            SubscriptionGroupWrapper(
                subscription_group_table=self._groups, data_version=self.version
            )
        )

    def restore(self, content: bytes) -> None:
        """Add the groups of the file; raises ProtocolError for an invalid content."""
        wrapper = decode_body(SubscriptionGroupWrapper, content)
        self._groups.update(wrapper.subscription_group_table)
        self.version = wrapper.data_version
