"""Forms of users."""

from dataclasses import replace
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.frame.forms import TablerForm
from console.gateway.acl_users.changes import AclUserSettings, new_password
from console.gateway.acl_users.entries import (
    NAME_CHARS_MAX,
    Entry,
    EntryError,
    check_entries,
    read_line,
)
from console.gateway.acl_users.listing import AclUser
from console.resources.forms import ResourceForm

PASSWORD_CHARS_MAX = 1_024
ENTRIES_CHARS_MAX = 1_000_000
ENTRY_ROWS = 8

TYPES = (
    ("Normal", _("Normal: may do what the entries allow")),
    ("Super", _("Super: may do everything")),
)
STATUSES = (
    ("enable", _("enabled")),
    ("disable", _("disabled: requests are refused")),
)


def check_name(name: str) -> None:
    """Raise ValidationError for a name that brokers refuse."""
    if not name or name != name.strip() or not name.isprintable() or len(name) > NAME_CHARS_MAX:
        raise ValidationError(
            _("At most %(most)d printable characters, no blank at begin or end.")
            % {"most": NAME_CHARS_MAX}
        )


def check_password(password: str) -> None:
    """Raise ValidationError for a password of blanks; the empty text is valid."""
    if password and not password.strip():
        raise ValidationError(_("The password is blank."))


class PasswordField(forms.CharField):
    """A new password; the console generates one for an empty field."""

    def __init__(self) -> None:
        super().__init__(
            label=_("Password"),
            required=False,
            strip=False,
            max_length=PASSWORD_CHARS_MAX,
            validators=[check_password],
            widget=forms.PasswordInput(
                attrs={"autocomplete": "new-password", "spellcheck": "false"}
            ),
            help_text=_("Leave empty to generate a password. It is shown once."),
        )


class PasswordForm(TablerForm):
    password = PasswordField()


class AclUserForm(ResourceForm):
    """Type, status and entries of a user."""

    layout: ClassVar[tuple[tuple[str, ...], ...]] = (("user_type", "user_status"), ("entries",))

    user_type = forms.ChoiceField(label=_("Type"), choices=TYPES, initial="Normal")
    user_status = forms.ChoiceField(label=_("Status"), choices=STATUSES, initial="enable")
    entries = forms.CharField(
        label=_("Access control list"),
        required=False,
        max_length=ENTRIES_CHARS_MAX,
        widget=forms.Textarea(
            attrs={
                "rows": ENTRY_ROWS,
                "class": "mono",
                "spellcheck": "false",
                "placeholder": "Allow Pub,Sub on Topic:orders*\n"
                "Allow Sub on Group:billing from 10.0.0.0/8,::1\n"
                "Deny All on Topic:payroll",
            }
        ),
        help_text=_(
            "One entry per line: Allow or Deny, actions, resource, addresses. Actions: All, Pub, "
            "Sub, Create, Update, Delete, Get, List. Resources: Topic:name, Topic:prefix*, "
            "Topic:*, the same with Group, Cluster and Namespace, and * for everything. Addresses: "
            "IP addresses and CIDR blocks; without them the entry is for every address. Without a "
            "matching entry a request is refused."
        ),
    )

    @classmethod
    def initial_of(cls, config: AclUser) -> dict[str, Any]:
        return {
            "user_type": config.user_type,
            "user_status": config.user_status,
            "entries": "\n".join(entry.line for entry in config.entries),
        }

    def clean_entries(self) -> tuple[Entry, ...]:
        lines = self.cleaned_data["entries"].splitlines()
        entries, errors = [], []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                entries.append(read_line(line))
            except EntryError as wrong:
                errors.append(
                    gettext("Line %(number)d: %(error)s")
                    % {
                        "number": number,
                        "error": wrong.args[0],
                    }
                )
        if errors:
            raise ValidationError(errors[:ENTRY_ROWS])
        try:
            return check_entries(entries)
        except EntryError as wrong:
            raise ValidationError(str(wrong)) from wrong

    def settings(self) -> AclUserSettings:
        given = self.cleaned_data
        return AclUserSettings(
            user_type=given["user_type"],
            user_status=given["user_status"],
            entries=given["entries"],
        )


class AclUserCreateForm(AclUserForm):
    layout = (("password",), *AclUserForm.layout)

    name = forms.CharField(
        label=_("Name"), max_length=NAME_CHARS_MAX, strip=False, validators=[check_name]
    )
    password = PasswordField()

    def settings(self) -> AclUserSettings:
        password = self.cleaned_data["password"] or new_password()
        return replace(super().settings(), password=password)
