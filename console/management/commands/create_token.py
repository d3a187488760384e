"""`manage.py create_token USER`: print a token for the REST API.

The database stores only the hash.
"""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.accounts.changes import TOKEN_DAYS_DEFAULT, TOKEN_DAYS_MAX, issue_token
from console.accounts.models import TOKEN_NAME_CHARS_MAX
from console.audit.recording import audited_as
from console.frame.access import Role, role_of
from console.frame.permissions import UnusablePermission, read_permissions
from console.frame.targets import resources
from console.gateway import GatewayError


class Command(BaseCommand):
    help = "Print a new token for USER; send it as “Authorization: Bearer …”."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", metavar="USER")
        parser.add_argument(
            "--days",
            type=int,
            default=TOKEN_DAYS_DEFAULT,
            help=f"days until the token expires, 1 to {TOKEN_DAYS_MAX} (default %(default)s)",
        )

        parser.add_argument("--role", choices=Role.values, help="default: the user's role")
        parser.add_argument(
            "--permission",
            action="append",
            default=[],
            metavar="RESOURCE:ACTION[:NAMES][@CLUSTER]",
            help="limit the token to this permission; may be repeated",
        )
        parser.add_argument("--name", default="command line", help="purpose of the token")

    def handle(self, *args: Any, **options: Any) -> None:
        days = options["days"]
        if not 1 <= days <= TOKEN_DAYS_MAX:
            raise CommandError(f"--days {days}: expected 1 to {TOKEN_DAYS_MAX}")
        if not 0 < len(options["name"]) <= TOKEN_NAME_CHARS_MAX:
            raise CommandError(f"--name: expected 1 to {TOKEN_NAME_CHARS_MAX} characters")
        user = get_user_model().objects.filter(username=options["user"]).first()
        if user is None:
            names = ", ".join(get_user_model().objects.values_list("username", flat=True)[:20])
            raise CommandError(f"no user named {options['user']!r}; there are: {names or 'none'}")
        if not user.is_active:
            raise CommandError(f"the user {user.get_username()} is disabled")
        own = role_of(user) or Role.VIEWER
        role = Role(options["role"]) if options["role"] else own
        try:
            permissions = read_permissions(options["permission"], resources())
        except UnusablePermission as fault:
            raise CommandError(f"--permission {fault}") from fault
        try:
            with audited_as(user, "token.create", target=f"{user}/{options['name']}") as entry:
                _facts, token = issue_token(
                    user, options["name"], role, days, permissions=permissions
                )
                listed = [str(each) for each in permissions]
                entry.after = {"role": role, "days": days, "permissions": listed}
        except GatewayError as refusal:
            raise CommandError(f"{refusal.detail} {refusal.hint}".strip()) from refusal
        self.stdout.write(token)
