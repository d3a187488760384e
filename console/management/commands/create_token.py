"""`manage.py create_token USER`: print a token for the REST API. Only its hash is kept."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from knox.models import AuthToken

DAYS_DEFAULT = 90
DAYS_MAX = 3_650


class Command(BaseCommand):
    help = "Print a new token for USER; send it as “Authorization: Token …”."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", metavar="USER")
        parser.add_argument(
            "--days",
            type=int,
            default=DAYS_DEFAULT,
            help=f"how long it works, 1 to {DAYS_MAX} (default %(default)s)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        days = options["days"]
        if not 1 <= days <= DAYS_MAX:
            raise CommandError(f"--days {days}: expected 1 to {DAYS_MAX}")
        user = get_user_model().objects.filter(username=options["user"]).first()
        if user is None:
            names = ", ".join(get_user_model().objects.values_list("username", flat=True)[:20])
            raise CommandError(f"no user named {options['user']!r}; there are: {names or 'none'}")
        if not user.is_active:
            raise CommandError(f"the user {user.get_username()} is switched off")
        _instance, token = AuthToken.objects.create(user, expiry=timedelta(days=days))
        self.stdout.write(token)
