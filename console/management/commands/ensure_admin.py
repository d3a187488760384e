"""`manage.py ensure_admin`: create the first administrator and print the password once."""

import os
import secrets
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand

from console.frame.access import Role

PASSWORD_VARIABLE = "GANTRY_ADMIN_PASSWORD"  # noqa: S105 -- a name, not a password
PASSWORD_BYTES = 12


class Command(BaseCommand):
    help = (
        "Create the user “admin” when no administrator exists. The password comes from "
        f"{PASSWORD_VARIABLE}, which also changes that of an existing “admin”; without it one is "
        "generated and printed this once."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        users = get_user_model()
        given = os.environ.get(PASSWORD_VARIABLE, "")
        admin = users.objects.filter(username="admin").first()
        if admin is None and users.objects.filter(profile__role=Role.ADMINISTRATOR).exists():
            return  # other administrators exist, and “admin” was removed
        if admin is None:
            password = given or secrets.token_urlsafe(PASSWORD_BYTES)
            users.objects.create_superuser("admin", password=password)
            if given:
                self.stdout.write(f"user admin created, password from {PASSWORD_VARIABLE}")
            else:
                self.stdout.write(f"user admin created, password (shown only now): {password}")
        elif given and not admin.check_password(given):
            admin.set_password(given)
            admin.save(update_fields=["password"])
            self.stdout.write(f"password of user admin changed to that of {PASSWORD_VARIABLE}")
