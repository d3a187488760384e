"""The area `accounts`: sign-in, users, API tokens, sessions."""

from importlib import import_module
from typing import Any

from django.conf import settings
from django.db.models.signals import post_save
from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class AccountsConfig(AreaConfig):
    name = "console.accounts"
    label = "accounts"
    resource = "users"
    title = _("Users")
    icon = "user"
    scope = "console"
    need = "admin"
    start = "users"

    def ready(self) -> None:
        post_save.connect(make_profile, sender=settings.AUTH_USER_MODEL)
        import_module("console.accounts.sessions")  # connects the sign-in signals
        import_module("console.accounts.authentication")  # registers the OpenAPI security scheme


def make_profile(instance: Any, created: bool, raw: bool = False, **_: Any) -> None:
    """Create the profile of a new account.

    The initial role follows from Django's flags, so that `createsuperuser` creates an
    administrator.
    """
    from console.accounts.models import Profile
    from console.frame.access import Role

    if not created or raw:
        return
    role = Role.OPERATOR if instance.is_staff else Role.VIEWER
    if instance.is_superuser:
        role = Role.ADMINISTRATOR
    instance.profile = Profile.objects.create(user=instance, role=role)
