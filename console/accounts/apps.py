"""People's accounts; not an area of its own in the navigation."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import post_save


class AccountsConfig(AppConfig):
    name = "console.accounts"
    label = "accounts"

    def ready(self) -> None:
        post_save.connect(make_profile, sender=settings.AUTH_USER_MODEL)


def make_profile(instance: Any, created: bool, raw: bool = False, **_: Any) -> None:
    """Every new account gets its profile. Django's own flags say which role it starts with, so
    that `createsuperuser` makes an administrator."""
    from console.access import Role
    from console.accounts.models import Profile

    if not created or raw:
        return
    role = (
        Role.ADMINISTRATOR
        if instance.is_superuser
        else Role.OPERATOR
        if instance.is_staff
        else Role.VIEWER
    )
    instance.profile = Profile.objects.create(user=instance, role=role)
