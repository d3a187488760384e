"""Forms of accounts and of the global white list."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from console.frame.forms import TablerForm
from console.gateway.acl_accounts.changes import AclAccountSettings, new_secret_key
from console.gateway.acl_accounts.permissions import (
    KEY_CHARS_MAX,
    SECRET_CHARS_MAX,
    WORDS,
    AccountError,
    check_access_key,
    check_pattern,
    check_patterns,
    check_permissions,
    check_secret_key,
)
from console.gateway.acl_accounts.processes import AclAccount
from console.gateway.acl_accounts.white_list import WhiteList, WhiteListSettings
from console.resources.forms import ResourceForm

T = TypeVar("T")

LINES_CHARS_MAX = 1_000_000
PATTERN_CHARS_MAX = 4_096
LIST_ROWS = 6

CHOICES = (
    ("DENY", _("DENY: nothing")),
    ("PUB", _("PUB: send")),
    ("SUB", _("SUB: consume")),
    ("PUB|SUB", _("PUB|SUB: send and consume")),
)
assert tuple(word for word, _text in CHOICES) == WORDS


def checked(check: Callable[[Any], T], value: Any) -> T:
    """The result of the check; AccountError becomes ValidationError."""
    try:
        return check(value)
    except AccountError as wrong:
        raise ValidationError(str(wrong.args[0])) from wrong


def _lines_of(text: str) -> Iterable[str]:
    return (line for line in text.splitlines() if line.strip())


class LinesField(forms.CharField):
    """One item per line; `check` returns the items."""

    def __init__(self, check: Callable[[Iterable[str]], tuple[str, ...]], **more: Any) -> None:
        self.check = check
        placeholder = more.pop("placeholder")
        attrs = {
            "rows": LIST_ROWS,
            "class": "mono",
            "spellcheck": "false",
            "placeholder": placeholder,
        }
        super().__init__(
            required=False,
            max_length=LINES_CHARS_MAX,
            widget=forms.Textarea(attrs=attrs),
            **more,
        )

    def clean(self, value: Any) -> tuple[str, ...]:
        return checked(self.check, _lines_of(super().clean(value)))


class SecretKeyField(forms.CharField):
    """A new secret key; the console generates one for an empty field."""

    def __init__(self) -> None:
        super().__init__(
            label=_("Secret key"),
            required=False,
            strip=False,
            max_length=SECRET_CHARS_MAX,
            widget=forms.PasswordInput(
                attrs={"autocomplete": "new-password", "spellcheck": "false"}
            ),
            help_text=_("Leave empty to generate a secret key. It is shown once."),
        )

    def clean(self, value: Any) -> str:
        text: str = super().clean(value)
        if text:
            checked(check_secret_key, text)
        return text


class SecretKeyForm(TablerForm):
    secret_key = SecretKeyField()


class AclAccountForm(ResourceForm):
    """Permissions of an account."""

    layout: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("admin",),
        ("default_topic_perm", "default_group_perm"),
        ("topic_perms", "group_perms"),
        ("white_remote_address",),
    )

    admin = forms.BooleanField(
        label=_("Administrator"),
        required=False,
        help_text=_(
            "May create, change and delete topics, groups, accounts and settings. Without a listed "
            "permission, an administrator may also send to and consume from everything."
        ),
    )
    default_topic_perm = forms.ChoiceField(
        label=_("Default for topics"), choices=CHOICES, initial="DENY"
    )
    default_group_perm = forms.ChoiceField(
        label=_("Default for groups"), choices=CHOICES, initial="DENY"
    )
    topic_perms = LinesField(
        check_permissions,
        label=_("Permissions of topics"),
        placeholder="orders=PUB|SUB\npayroll=DENY",
        help_text=_("One topic=permission per line: DENY, PUB, SUB or PUB|SUB. Exact names."),
    )
    group_perms = LinesField(
        check_permissions,
        label=_("Permissions of groups"),
        placeholder="billing=SUB",
        help_text=_("One group=permission per line. Consumers need SUB for topic and group."),
    )
    white_remote_address = forms.CharField(
        label=_("White address"),
        required=False,
        max_length=PATTERN_CHARS_MAX,
        widget=forms.TextInput(attrs={"placeholder": "10.0.0.*", "spellcheck": "false"}),
        help_text=_(
            "Requests with this access key from these addresses need neither signature nor "
            "permission."
        ),
    )

    @classmethod
    def initial_of(cls, config: AclAccount) -> dict[str, Any]:
        return {
            "admin": config.admin,
            "default_topic_perm": config.default_topic_perm,
            "default_group_perm": config.default_group_perm,
            "topic_perms": "\n".join(config.topic_perms),
            "group_perms": "\n".join(config.group_perms),
            "white_remote_address": config.white_remote_address,
        }

    def clean_white_remote_address(self) -> str:
        return checked(check_pattern, self.cleaned_data["white_remote_address"])

    def settings(self) -> AclAccountSettings:
        given = self.cleaned_data
        return AclAccountSettings(
            **{name: given[name] for row in AclAccountForm.layout for name in row}
        )


class AclAccountCreateForm(AclAccountForm):
    layout = (("secret_key",), *AclAccountForm.layout)

    name = forms.CharField(label=_("Access key"), max_length=KEY_CHARS_MAX, strip=False)
    secret_key = SecretKeyField()

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        checked(check_access_key, name)
        return name

    def settings(self) -> AclAccountSettings:
        secret_key = self.cleaned_data["secret_key"] or new_secret_key()
        return replace(super().settings(), secret_key=secret_key)


class WhiteListForm(ResourceForm):
    """The patterns of the global white list."""

    layout: ClassVar[tuple[tuple[str, ...], ...]] = (("patterns",),)

    patterns = LinesField(
        check_patterns,
        label=_("Global white list"),
        placeholder="10.0.0.*\n10.0.1.5-20\n10.0.2.{1,2}\n1050::5:*",
        help_text=_(
            "One pattern per line. Requests from these addresses need no account, no signature and "
            "no permission. An empty list trusts no address."
        ),
    )

    @classmethod
    def initial_of(cls, config: WhiteList) -> dict[str, Any]:
        return {"patterns": "\n".join(config.patterns)}

    def settings(self) -> WhiteListSettings:
        return WhiteListSettings(patterns=self.cleaned_data["patterns"])
