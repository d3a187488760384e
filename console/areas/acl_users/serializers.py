"""Serializers of users."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from console.api.serializers import AnsweredSerializer, BodySerializer, OutcomesSerializer
from console.areas.acl_users.forms import PASSWORD_CHARS_MAX, check_name, check_password
from console.gateway.acl_users.changes import AclUserSettings, new_password
from console.gateway.acl_users.entries import (
    ACTIONS,
    DECISIONS,
    NAME_CHARS_MAX,
    POLICY_TYPES,
    SOURCES_MAX,
    Entry,
    EntryError,
    check_entries,
)
from console.gateway.acl_users.listing import USER_STATUSES, USER_TYPES
from console.resources.secrets import new_secret_member

RESOURCE_CHARS_MAX = NAME_CHARS_MAX + len("Namespace:")
ADDRESS_CHARS_MAX = 64


class AclEntrySerializer(BodySerializer):
    """A rule of the list, identified by policy type and resource."""

    resource = serializers.CharField(
        max_length=RESOURCE_CHARS_MAX,
        trim_whitespace=False,
        help_text="`Topic:name`, `Topic:prefix*`, `Topic:*`, also with Group, Cluster and "
        "Namespace; `*` for everything.",
    )
    actions = serializers.ListField(
        child=serializers.CharField(max_length=16),
        min_length=1,
        max_length=len(ACTIONS),
        help_text=f"Any of: {', '.join(ACTIONS)}.",
    )
    decision = serializers.CharField(max_length=16, help_text=f"{' or '.join(DECISIONS)}.")
    source_ips = serializers.ListField(
        child=serializers.CharField(max_length=ADDRESS_CHARS_MAX),
        max_length=SOURCES_MAX,
        required=False,
        default=list,
        help_text="IP addresses and CIDR blocks; empty: every address.",
    )
    policy_type = serializers.CharField(
        max_length=16,
        required=False,
        default="Custom",
        help_text=f"{' or '.join(POLICY_TYPES)}. Default entries decide when no Custom entry "
        "matches.",
    )


class AclUserRowSerializer(serializers.Serializer[Any]):
    """A user over all brokers; null means unknown."""

    name = serializers.CharField()
    user_type = serializers.CharField(allow_null=True, help_text="Super or Normal.")
    user_status = serializers.CharField(allow_null=True, help_text="enable or disable.")
    entries = serializers.IntegerField(help_text="Entries of the list on the first broker.")
    brokers = serializers.ListField(child=serializers.CharField())
    missing_on = serializers.ListField(
        child=serializers.CharField(), help_text="Brokers that answered without the user."
    )
    drift = serializers.BooleanField(help_text="Brokers differ, or a broker has no such user.")


class AclUserPageSerializer(AnsweredSerializer):
    items = AclUserRowSerializer(many=True)
    total = serializers.IntegerField()
    next_cursor = serializers.CharField(allow_null=True)
    unenforced_on = serializers.ListField(
        child=serializers.CharField(),
        help_text="Brokers with authorizationEnabled=false: the entries have no effect there.",
    )


class AclUserConfigSerializer(serializers.Serializer[Any]):
    """A user on one broker process."""

    broker = serializers.CharField(help_text="Broker name; `name:id` for a slave.")
    addr = serializers.CharField()
    user_type = serializers.CharField(allow_null=True)
    user_status = serializers.CharField(allow_null=True)
    entries = AclEntrySerializer(many=True)


class AclUserSerializer(AnsweredSerializer):
    """A user on every broker process; passwords are never returned."""

    name = serializers.CharField()
    missing_on = serializers.ListField(child=serializers.CharField())
    drift = serializers.BooleanField()
    configs = AclUserConfigSerializer(many=True)


class AclUserImpactSerializer(AnsweredSerializer):
    """Objects removed by a deletion."""

    brokers = serializers.ListField(child=serializers.CharField())
    user_type = serializers.CharField(allow_null=True)
    entries = serializers.IntegerField()
    clients = serializers.IntegerField(
        allow_null=True,
        help_text="Connected clients that sign as the user; null when the number is unknown.",
    )
    protected = serializers.BooleanField()


class PasswordBodySerializer(BodySerializer):
    """A password; the console generates one without this field."""

    password = serializers.CharField(
        max_length=PASSWORD_CHARS_MAX,
        trim_whitespace=False,
        required=False,
        allow_blank=True,
        write_only=True,
    )

    def validate_password(self, password: str) -> str:
        _check(check_password, password)
        return password


class AclUserChangeSerializer(BodySerializer):
    """Settings of a user. Omitted fields keep their values; `entries` replaces the whole list."""

    user_type = serializers.ChoiceField(choices=USER_TYPES, required=False)
    user_status = serializers.ChoiceField(choices=USER_STATUSES, required=False)
    entries = AclEntrySerializer(many=True, required=False)
    brokers = serializers.ListField(
        child=serializers.CharField(max_length=255),
        required=False,
        max_length=1_000,
        help_text="Brokers to change; all brokers if absent.",
    )

    def validate_entries(self, given: list[dict[str, Any]]) -> tuple[Entry, ...]:
        entries = [
            Entry(
                resource=each["resource"],
                actions=tuple(each["actions"]),
                decision=each["decision"],
                source_ips=tuple(each["source_ips"]),
                policy_type=each["policy_type"],
            )
            for each in given
        ]
        try:
            return check_entries(entries)
        except EntryError as wrong:
            raise serializers.ValidationError(str(wrong)) from wrong

    def settings(self) -> AclUserSettings:
        given = self.validated_data
        return AclUserSettings(
            user_type=given.get("user_type"),
            user_status=given.get("user_status"),
            entries=given.get("entries"),
        )


class AclUserCreateSerializer(PasswordBodySerializer, AclUserChangeSerializer):
    """A new user. Defaults: Normal, enable, no entries, a generated password, all brokers."""

    name = serializers.CharField(max_length=NAME_CHARS_MAX, trim_whitespace=False)

    def validate_name(self, name: str) -> str:
        _check(check_name, name)
        return name

    def settings(self) -> AclUserSettings:
        password = self.validated_data.get("password") or new_password()
        return replace(super().settings(), password=password)


class AclUserPatchSerializer(AclUserChangeSerializer):
    """At least one field besides `brokers`."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not set(attrs) - {"brokers"}:
            raise serializers.ValidationError({"": [_("Nothing to change.")]})
        return attrs


class NewPasswordSerializer(OutcomesSerializer):
    """One outcome per broker process, and a generated password, which is returned only once."""

    password = new_secret_member()


def _check(check: Callable[[str], None], text: str) -> None:
    try:
        check(text)
    except ValidationError as wrong:
        raise serializers.ValidationError(wrong.messages) from wrong
