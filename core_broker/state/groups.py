"""The subscription groups of a broker: subscriptionGroup.json.

    {"dataVersion":{…},"subscriptionGroupTable":{group: SubscriptionGroupConfig}}

A group is made on first use when autoCreateSubscriptionGroup allows it. Configurations are
replaced, never changed. Compatible with RocketMQ's SubscriptionGroupManager.
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

#: More groups than this are not made, so that forged heartbeats cannot fill the memory.
GROUPS_MAX = 100_000


class GroupTable:
    """All subscription groups, and the version of the table."""

    def __init__(self) -> None:
        self._groups = {name: SubscriptionGroupConfig(group_name=name) for name in SYSTEM_GROUPS}
        self.version = DataVersion()
        #: Look-up by name; None when there is no such group.
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
        """The group, made now if it may be, and whether it was; None when it may not."""
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
        """Add a group, or replace the one of the same name."""
        self._groups[group.group_name] = group
        self.version = self.version.next(now_ms)

    def remove(self, name: str, now_ms: int) -> bool:
        """Delete a group; False when there was none."""
        if self._groups.pop(name, None) is None:
            return False
        self.version = self.version.next(now_ms)
        return True

    def encode(self) -> bytes:
        """The table as it is kept in the file and answered to code 201."""
        return encode_body(
            SubscriptionGroupWrapper(
                subscription_group_table=self._groups, data_version=self.version
            )
        )

    def restore(self, content: bytes) -> None:
        """Add what a file holds; raises ProtocolError when it is no such file."""
        wrapper = decode_body(SubscriptionGroupWrapper, content)
        self._groups.update(wrapper.subscription_group_table)
        self.version = wrapper.data_version
