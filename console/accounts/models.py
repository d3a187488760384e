"""Tables beside Django's users and knox's tokens: profiles, token facts, open sessions."""

from typing import Any

from django.conf import settings
from django.db import models
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from console.frame.access import Held, Role
from console.frame.permissions import Permission, read_permissions

TOKEN_NAME_CHARS_MAX = 64
ROLE_NAME_CHARS_MAX = 64
DESCRIPTION_CHARS_MAX = 200
ISSUER_CHARS_MAX = 255
SUBJECT_CHARS_MAX = 255


class CustomRole(models.Model):
    """A role of this console: a name for permissions."""

    name = models.CharField(max_length=ROLE_NAME_CHARS_MAX, unique=True)
    description = models.CharField(max_length=DESCRIPTION_CHARS_MAX, blank=True)
    #: Texts of `console.frame.permissions`.
    permissions = models.JSONField(default=list, blank=True)

    class Meta:
        verbose_name = _("role")
        verbose_name_plural = _("roles")

    def __str__(self) -> str:
        return self.name

    @property
    def parsed(self) -> tuple[Permission, ...]:
        return read_permissions(self.permissions)

    @property
    def state(self) -> dict[str, Any]:
        """The role in the audit list."""
        return {"description": self.description, "permissions": self.permissions}


class Profile(models.Model):
    """Roles and time zone of an account; created with the account."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="profile"
    )
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.VIEWER)
    roles = models.ManyToManyField(CustomRole, related_name="profiles", blank=True)
    #: IANA name such as Asia/Shanghai; empty for the console's time zone.
    time_zone = models.CharField(max_length=64, blank=True)

    class Meta:
        verbose_name = _("profile")
        verbose_name_plural = _("profiles")

    def __str__(self) -> str:
        return f"{self.user}: {self.role}"

    @cached_property
    def custom_permissions(self) -> tuple[Held, ...]:
        """The permissions of the roles of this console; read once per request."""
        return tuple(
            Held(role.name, permission) for role in self.roles.all() for permission in role.parsed
        )


class TokenFacts(models.Model):
    """Name, rights and last use of an API token. Knox stores the token, as a hash only."""

    token = models.OneToOneField(
        "knox.AuthToken", models.CASCADE, primary_key=True, related_name="facts"
    )
    name = models.CharField(max_length=TOKEN_NAME_CHARS_MAX)
    role = models.CharField(max_length=16, choices=Role.choices)
    #: Texts of `console.frame.permissions`; empty: everything that the role allows.
    permissions = models.JSONField(default=list, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    last_used_from = models.CharField(max_length=64, blank=True)

    class Meta:
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")

    def __str__(self) -> str:
        return self.name


class SignIn(models.Model):
    """An open session of a user, for the list of sessions and for ending a session.

    Django's session table has no user column.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="sign_ins")
    session_key = models.CharField(max_length=40, unique=True)
    at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(db_index=True)
    source = models.CharField(max_length=64, blank=True)
    browser = models.CharField(max_length=200, blank=True)

    class Meta:
        verbose_name = _("session")
        verbose_name_plural = _("sessions")
        ordering = ["-at"]

    def __str__(self) -> str:
        return f"{self.user} from {self.source}"

    @property
    def at_ms(self) -> int:
        return int(self.at.timestamp() * 1000)


class SecondFactor(models.Model):
    """The secret of an account's authenticator app (`second_factor.py`)."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="second_factor"
    )
    encrypted = models.TextField()
    is_confirmed = models.BooleanField(default=False)
    #: Time step of the last accepted code: a code counts once.
    last_step = models.BigIntegerField(default=0)
    failures = models.IntegerField(default=0)
    locked_until_ms = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return str(self.user)


class RecoveryCode(models.Model):
    """A code that replaces the authenticator app once, as a keyed digest."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="recovery_codes"
    )
    digest = models.CharField(max_length=64)

    def __str__(self) -> str:
        return str(self.user)


class ExternalIdentity(models.Model):
    """The account of somebody whom an OpenID Connect provider or LDAP knows (`external.py`)."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="external"
    )
    #: URL of the OpenID Connect issuer, or `ldap`.
    issuer = models.CharField(max_length=ISSUER_CHARS_MAX)
    #: Unchanging name of the person at the issuer.
    subject = models.CharField(max_length=SUBJECT_CHARS_MAX)
    last_sign_in_ms = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="one_account_per_identity")
        ]

    def __str__(self) -> str:
        return f"{self.user} at {self.issuer}"
