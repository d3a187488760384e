"""The subscription groups of a broker: subscriptionGroup.json.

    {"dataVersion":{…},"subscriptionGroupTable":{group: SubscriptionGroupConfig}}

autoCreateSubscriptionGroup allows the creation of groups on first use. Configurations are
replaced, never mutated. A change encodes a few groups (encoded_members.py). Compatible with
RocketMQ's SubscriptionGroupManager.
"""

from collections.abc import Mapping

from core_broker.errors import ClientError
from core_broker.message.topics import SYSTEM_GROUPS, is_system_group, validate_group
from core_broker.remoting.bodies import (
    DataVersion,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
    decode_body,
    encode_body,
)
from core_broker.state.encoded_members import EncodedMembers


class GroupTable:
    """All subscription groups, and the version of the table."""

    def __init__(self) -> None:
        self._groups: dict[str, SubscriptionGroupConfig] = {}
        self._members = EncodedMembers[SubscriptionGroupConfig]()
        self.version = DataVersion()
        #: Number of changes of existing groups; the creation of a group does not count.
        self.replacements = 0
        for name in SYSTEM_GROUPS:
            self._set(name, SubscriptionGroupConfig(group_name=name))
        #: Look-up by name; None for a missing group.
        self.get = self._groups.get

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def encoded_count(self) -> int:
        """Number of groups that all saves and answers have encoded."""
        return self._members.encoded

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
        if not (may_create or is_system_group(name)):
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
        self._set(group.group_name, group)
        self.version = self.version.next(now_ms)

    def remove(self, name: str, now_ms: int) -> bool:
        """Delete a group; False when the group does not exist."""
        if name not in self._groups:
            return False
        self._drop(name)
        self.version = self.version.next(now_ms)
        return True

    def encode(self) -> bytes:
        """The table in the format of the file and of the answer to code 201."""
        return b"".join(self.parts())

    def parts(self) -> list[bytes]:
        """The encoded table in parts, to be joined without a separator."""
        head = b'{"dataVersion":%b,"subscriptionGroupTable":{' % encode_body(self.version)
        return [head, *self._members.parts(), b"}}"]

    def restore(self, content: bytes) -> None:
        """Add the groups of the file; raises ProtocolError for an invalid content."""
        wrapper = decode_body(SubscriptionGroupWrapper, content)
        for name, group in wrapper.subscription_group_table.items():
            self._set(name, group)
        self.version = wrapper.data_version

    def replace_all(
        self, groups: Mapping[str, SubscriptionGroupConfig], version: DataVersion
    ) -> None:
        """Become a copy of another broker's table."""
        for name in [name for name in self._groups if name not in groups]:
            self._drop(name)
        for name, group in groups.items():
            if self._groups.get(name) != group:
                self._set(name, group)
        self.version = version

    def _drop(self, name: str) -> None:
        del self._groups[name]
        self._members.remove(name)
        self.replacements += 1

    def _set(self, name: str, group: SubscriptionGroupConfig) -> None:
        self.replacements += name in self._groups
        self._groups[name] = group
        self._members.put(name, group)
