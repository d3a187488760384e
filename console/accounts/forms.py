"""Forms of accounts and tokens."""

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from console.accounts.changes import TOKEN_DAYS_DEFAULT, TOKEN_DAYS_MAX
from console.accounts.external import ProviderFailed, SignInRefused
from console.accounts.models import TOKEN_NAME_CHARS_MAX, CustomRole
from console.accounts.zones import zone_names
from console.frame.access import Role
from console.frame.forms import TablerForm, dress
from console.frame.permissions import PERMISSIONS_MAX, UnusablePermission, read_permissions
from console.frame.targets import resources

USERNAME_CHARS_MAX = 150
#: Longest text of a code, with blanks and hyphens.
CODE_CHARS_MAX = 64
#: Longest password that is compared.
PASSWORD_CHARS_MAX = 4_096
#: Longest permission: resource, action and two patterns.
PERMISSION_CHARS_MAX = 600
PERMISSION_EXAMPLES = "topics:read\ngroups:write:payment-*@local"


class SignInForm(AuthenticationForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            dress(field)

    def clean(self) -> Any:
        try:
            return super().clean()
        except (ProviderFailed, SignInRefused) as failure:
            # Not a wrong password: it does not count for the limits of wrong passwords.
            raise ValidationError(f"{failure.detail} {failure.hint}".strip()) from failure


class CodeForm(TablerForm):
    """A code of the authenticator app, or a recovery code."""

    code = forms.CharField(label=_("One-time code"), max_length=CODE_CHARS_MAX)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].widget.attrs |= {
            "autocomplete": "one-time-code",
            "inputmode": "text",
            "spellcheck": "false",
        }


class OwnPasswordForm(TablerForm):
    """The password of the own account, asked again."""

    password = forms.CharField(
        label=_("Your password"),
        max_length=PASSWORD_CHARS_MAX,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
        help_text=_("Before an authenticator app is set up, the console asks for it again."),
    )


class NewPasswordForm(PasswordChangeForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            dress(field)


class RoleForm(TablerForm):
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices, initial=Role.VIEWER)


class RolesForm(RoleForm):
    """The built-in role and the further roles of an account."""

    roles = forms.ModelMultipleChoiceField(
        label=_("Further roles"),
        queryset=CustomRole.objects.order_by("name"),
        to_field_name="name",
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )


class UserForm(RoleForm):
    """A new account; the console generates the password and shows the password once."""

    field_order = ("username", "role")

    username = forms.CharField(label=_("Name"), max_length=USERNAME_CHARS_MAX)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}


class PermissionsField(forms.CharField):
    """One permission per line; the value is a tuple of `Permission`."""

    widget = forms.Textarea

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            label=_("Permissions"), max_length=PERMISSIONS_MAX * PERMISSION_CHARS_MAX, **kwargs
        )
        self.widget.attrs |= {"rows": 4, "spellcheck": "false", "placeholder": PERMISSION_EXAMPLES}

    def clean(self, value: Any) -> Any:
        try:
            return read_permissions(super().clean(value).splitlines(), resources())
        except UnusablePermission as fault:
            raise ValidationError(str(fault)) from fault


class TokenForm(TablerForm):
    """A new token of the current user, with at most the user's role."""

    name = forms.CharField(
        label=_("Name"),
        max_length=TOKEN_NAME_CHARS_MAX,
        help_text=_("Purpose of the token, to identify the token later."),
    )
    role = forms.ChoiceField(label=_("Role"))
    permissions = PermissionsField(
        required=False,
        help_text=_(
            "Optional: one permission per line, as resource:action[:names][@cluster]. Without a "
            "permission, the token may do everything that the role allows."
        ),
    )
    days = forms.IntegerField(
        label=_("Valid for, days"),
        min_value=1,
        max_value=TOKEN_DAYS_MAX,
        initial=TOKEN_DAYS_DEFAULT,
    )

    def __init__(self, *args: Any, most: Role, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        role = self.fields["role"]
        assert isinstance(role, forms.ChoiceField)
        role.choices = [(each.value, each.label) for each in Role if each.rank <= most.rank]
        role.initial = Role.VIEWER


class ZoneForm(TablerForm):
    time_zone = forms.ChoiceField(label=_("Time zone"), required=False)

    def __init__(self, *args: Any, console_zone: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["time_zone"]
        assert isinstance(field, forms.ChoiceField)
        own = _("Console default: %(zone)s") % {"zone": console_zone}
        field.choices = [("", own), *((name, name) for name in zone_names())]
