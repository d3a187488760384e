"""Serializers of accounts and of the global white list."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from console.api.serializers import AnsweredSerializer, BodySerializer, OutcomesSerializer
from console.gateway.acl_accounts.changes import AclAccountSettings, new_secret_key
from console.gateway.acl_accounts.permissions import (
    KEY_CHARS_MAX,
    NAME_CHARS_MAX,
    PATTERNS_MAX,
    PERMISSIONS_MAX,
    SECRET_CHARS_MAX,
    WORDS,
    AccountError,
    check_access_key,
    check_pattern,
    check_patterns,
    check_permissions,
    check_secret_key,
    check_word,
)
from console.gateway.acl_accounts.white_list import WhiteListSettings
from console.resources.secrets import new_secret_member

ITEM_CHARS_MAX = NAME_CHARS_MAX + 16
PATTERN_CHARS_MAX = 4_096
WORD_CHARS_MAX = 16
SETTINGS = (
    "admin",
    "white_remote_address",
    "default_topic_perm",
    "default_group_perm",
    "topic_perms",
    "group_perms",
)


def _checked(check: Callable[[Any], Any], value: Any) -> Any:
    try:
        return check(value)
    except AccountError as wrong:
        raise serializers.ValidationError(str(wrong.args[0])) from wrong


def _permissions() -> serializers.ListField:
    return serializers.ListField(
        child=serializers.CharField(max_length=ITEM_CHARS_MAX),
        max_length=PERMISSIONS_MAX,
        required=False,
        help_text=f"Items name=permission; permissions: {', '.join(WORDS)}. Replaces the list.",
    )


class AclAccountRowSerializer(serializers.Serializer[Any]):
    """An account over all brokers, with the values of the first."""

    name = serializers.CharField(help_text="Access key.")
    admin = serializers.BooleanField()
    default_topic_perm = serializers.CharField()
    default_group_perm = serializers.CharField()
    permissions = serializers.IntegerField(help_text="Listed permissions of topics and groups.")
    brokers = serializers.ListField(child=serializers.CharField())
    missing_on = serializers.ListField(
        child=serializers.CharField(), help_text="Brokers that answered without the account."
    )
    drift = serializers.BooleanField(help_text="Brokers differ, or a broker has no such account.")


class AclAccountPageSerializer(AnsweredSerializer):
    items = AclAccountRowSerializer(many=True)
    total = serializers.IntegerField()
    next_cursor = serializers.CharField(allow_null=True)


class AclAccountConfigSerializer(serializers.Serializer[Any]):
    """An account on one broker process."""

    broker = serializers.CharField(help_text="Broker name; `name:id` for a slave.")
    addr = serializers.CharField()
    admin = serializers.BooleanField()
    white_remote_address = serializers.CharField()
    default_topic_perm = serializers.CharField()
    default_group_perm = serializers.CharField()
    topic_perms = serializers.ListField(child=serializers.CharField())
    group_perms = serializers.ListField(child=serializers.CharField())


class AclAccountSerializer(AnsweredSerializer):
    """An account on every broker process; secret keys are never returned."""

    name = serializers.CharField()
    missing_on = serializers.ListField(child=serializers.CharField())
    drift = serializers.BooleanField()
    configs = AclAccountConfigSerializer(many=True)


class AclAccountImpactSerializer(AnsweredSerializer):
    """Objects removed by a deletion."""

    brokers = serializers.ListField(child=serializers.CharField())
    admin = serializers.BooleanField()
    permissions = serializers.IntegerField()
    clients = serializers.IntegerField(
        allow_null=True,
        help_text="Connected clients that sign as the account; null when the number is unknown.",
    )
    protected = serializers.BooleanField()


class SecretKeyBodySerializer(BodySerializer):
    """A secret key; the console generates one without this field."""

    secret_key = serializers.CharField(
        max_length=SECRET_CHARS_MAX,
        trim_whitespace=False,
        required=False,
        allow_blank=True,
        write_only=True,
    )

    def validate_secret_key(self, secret_key: str) -> str:
        if secret_key:
            _checked(check_secret_key, secret_key)
        return secret_key


class _BrokersSerializer(BodySerializer):
    brokers = serializers.ListField(
        child=serializers.CharField(max_length=255),
        required=False,
        max_length=1_000,
        help_text="Brokers to change; all brokers if absent.",
    )


class AclAccountChangeSerializer(_BrokersSerializer):
    """Settings of an account. Omitted fields keep their values."""

    admin = serializers.BooleanField(required=False)
    white_remote_address = serializers.CharField(
        max_length=PATTERN_CHARS_MAX,
        required=False,
        allow_blank=True,
        help_text="Requests with the access key from these addresses need no signature; empty: "
        "none.",
    )
    default_topic_perm = serializers.CharField(max_length=WORD_CHARS_MAX, required=False)
    default_group_perm = serializers.CharField(max_length=WORD_CHARS_MAX, required=False)
    topic_perms = _permissions()
    group_perms = _permissions()

    def validate_white_remote_address(self, text: str) -> Any:
        return _checked(check_pattern, text)

    def validate_default_topic_perm(self, word: str) -> Any:
        return _checked(check_word, word)

    def validate_default_group_perm(self, word: str) -> Any:
        return _checked(check_word, word)

    def validate_topic_perms(self, items: Iterable[str]) -> Any:
        return _checked(check_permissions, items)

    def validate_group_perms(self, items: Iterable[str]) -> Any:
        return _checked(check_permissions, items)

    def settings(self) -> AclAccountSettings:
        given = self.validated_data
        return AclAccountSettings(**{name: given.get(name) for name in SETTINGS})


class AclAccountCreateSerializer(SecretKeyBodySerializer, AclAccountChangeSerializer):
    """A new account. Defaults: no administrator, DENY, no permissions, a generated secret key."""

    name = serializers.CharField(
        max_length=KEY_CHARS_MAX, trim_whitespace=False, help_text="Access key."
    )

    def validate_name(self, name: str) -> str:
        _checked(check_access_key, name)
        return name

    def settings(self) -> AclAccountSettings:
        secret_key = self.validated_data.get("secret_key") or new_secret_key()
        return replace(super().settings(), secret_key=secret_key)


class AclAccountPatchSerializer(AclAccountChangeSerializer):
    """At least one field besides `brokers`."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not set(attrs) - {"brokers"}:
            raise serializers.ValidationError({"": [_("Nothing to change.")]})
        return attrs


class NewSecretKeySerializer(OutcomesSerializer):
    """One outcome per broker process, and a generated secret key, returned only once."""

    secret_key = new_secret_member()


class WhiteListPatchSerializer(_BrokersSerializer):
    """The new global white list of the brokers' default file."""

    patterns = serializers.ListField(
        child=serializers.CharField(max_length=PATTERN_CHARS_MAX),
        max_length=PATTERNS_MAX,
        help_text="Address patterns, such as 10.0.0.* or 10.0.0.1-20. Replaces the list.",
    )

    def validate_patterns(self, texts: Iterable[str]) -> Any:
        return _checked(check_patterns, texts)

    def settings(self) -> WhiteListSettings:
        return WhiteListSettings(patterns=self.validated_data["patterns"])


class WhiteListFileSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    patterns = serializers.ListField(child=serializers.CharField())


class WhiteListConfigSerializer(serializers.Serializer[Any]):
    """The white list of one broker process."""

    broker = serializers.CharField(help_text="Broker name; `name:id` for a slave.")
    addr = serializers.CharField()
    patterns = serializers.ListField(child=serializers.CharField())
    others = WhiteListFileSerializer(
        many=True, help_text="Patterns of further files, which PATCH does not change."
    )


class WhiteListSerializer(AnsweredSerializer):
    drift = serializers.BooleanField(help_text="Brokers differ.")
    configs = WhiteListConfigSerializer(many=True)


class AclFileSerializer(serializers.Serializer[Any]):
    path = serializers.CharField(help_text="Path on the broker's machine.")
    counter = serializers.IntegerField(help_text="Version: number of changes by commands.")
    changed_ms = serializers.IntegerField()


class AclStateSerializer(serializers.Serializer[Any]):
    """ACL 1.0 on one broker process."""

    broker = serializers.CharField(help_text="Broker name; `name:id` for a slave.")
    addr = serializers.CharField()
    state = serializers.ChoiceField(
        choices=["on", "unlisted", "off", "unsupported"],
        help_text="`on`: accounts are listed. `unlisted`: aclEnable=true, and the broker lists no "
        "accounts. `off`: aclEnable=false. `unsupported`: no ACL 1.0.",
    )
    accounts = serializers.IntegerField(allow_null=True)
    files = AclFileSerializer(many=True)
    problem = serializers.CharField(
        allow_null=True, help_text="Why the broker has not loaded changed files."
    )


class AclStatesSerializer(AnsweredSerializer):
    items = AclStateSerializer(many=True)
