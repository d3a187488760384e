"""Two threads change the same version of an object, in a program with a database of its own.

    GANTRY_HOME=… [DATABASE_URL=…] python -m tests.api.simultaneous_changes

Prints one JSON object: for each kind of object the outcomes of both changes, and the stored value.
Each change waits between check and save until the other one has checked, too; where the row is
locked, the other one cannot check before the save, and the wait ends after WAIT_S.
"""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import django
from django.core.management import call_command

WAIT_S: Final = 0.5
NEW_VALUES: Final = ("first", "second")

Change = Callable[[str], object]


def main() -> None:
    django.setup()
    call_command("migrate", verbosity=0)
    print(json.dumps({name: both(*each) for name, *each in kinds()}))


def both(module: Any, change: Change, stored: Callable[[], str]) -> dict[str, Any]:
    """Run the change in two threads with a value each."""
    from django.db import connection

    from console.gateway import NotAllowedNow, PreconditionFailed
    from console.gateway.changes import check_unchanged

    meeting, outcomes = threading.Barrier(2), []

    def check_and_wait(expected: str | None, found: str) -> None:
        check_unchanged(expected, found)
        try:
            meeting.wait(WAIT_S)
        except threading.BrokenBarrierError:
            meeting.abort()

    def run(value: str) -> None:
        try:
            change(value)
            outcomes.append(f"saved {value}")
        except (PreconditionFailed, NotAllowedNow):
            outcomes.append("refused")
        finally:
            connection.close()

    module.check_unchanged = check_and_wait
    threads = [threading.Thread(target=run, args=(value,)) for value in NEW_VALUES]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    module.check_unchanged = check_unchanged
    return {"outcomes": outcomes, "stored": stored()}


def kinds() -> Iterator[tuple[Any, ...]]:
    """Name, module, change and stored value of each kind of object with versions."""
    from django.contrib.auth.models import User

    staff = User.objects.create_superuser("staff")
    yield from alarms(staff)
    yield from masks_and_bodies(staff)
    yield labels()
    yield from roles(staff)
    yield administrators()


def alarms(staff: Any) -> Iterator[tuple[Any, ...]]:
    from console.services.alarms import receivers, rules
    from console.services.alarms.models import AlarmRule, Receiver

    AlarmRule.objects.create(name="slow", source="finding", changed_ms=1)
    rule = AlarmRule.objects.get(name="slow")
    values, known = rules.state_of(rule), rules.version(rule)
    del values["receivers"]
    yield (
        "alarm rule",
        rules,
        lambda value: rules.save(
            AlarmRule.objects.get(pk=rule.pk), values | {"note": value}, (), staff, known
        ),
        lambda: AlarmRule.objects.get(pk=rule.pk).note,
    )

    def draft(recipients: str) -> receivers.Draft:
        more: dict[str, Any] = {"enabled": True, "all_rules": True, "url": None, "secret": None}
        mail = f"{recipients}@example.org"
        return receivers.Draft(name="duty", kind="mail", language="en", recipients=mail, **more)

    receiver = receivers.save(None, draft("new"), staff)
    yield (
        "receiver",
        receivers,
        lambda value: receivers.save(
            Receiver.objects.get(), draft(value), staff, receivers.version(receiver)
        ),
        lambda: Receiver.objects.get().recipients.partition("@")[0],
    )


def masks_and_bodies(staff: Any) -> Iterator[tuple[Any, ...]]:
    from console.services.masking import rules as masks
    from console.services.masking.models import MaskingRule
    from console.services.schemas import stored
    from console.services.schemas.models import BodyRule, BodySchema

    mask = masks.save(staff, None, masks.Draft("cards", "*", "json", "$..card"), "local")
    yield (
        "mask",
        masks,
        lambda value: masks.save(
            staff,
            MaskingRule.objects.get(),
            masks.Draft("cards", "*", "json", "$..card", note=value),
            "local",
            masks.version(mask),
        ),
        lambda: MaskingRule.objects.get().note,
    )
    stored.save_schema("local", "s", "avro", b'"string"', staff)
    new = stored.RuleDraft("orders", "s", "", "raw")
    body_rule = stored.save_rule("local", None, new, staff)
    yield (
        "body rule",
        stored,
        lambda value: stored.save_rule(
            "local",
            BodyRule.objects.get(),
            stored.RuleDraft(value, "s", "", "raw"),
            staff,
            stored.version(body_rule),
        ),
        lambda: BodyRule.objects.get().topic,
    )
    schema = stored.save_schema("local", "t", "avro", b'"int"', staff)
    yield (
        "body schema",
        stored,
        lambda value: stored.save_schema(
            "local", "t", "avro", avro(value), staff, expected=stored.schema_version(schema)
        ),
        lambda: json.loads(bytes(BodySchema.objects.get(name="t").content))["name"],
    )


def avro(name: str) -> bytes:
    """An Avro schema with a name."""
    return json.dumps({"type": "fixed", "name": name, "size": 1}).encode()


def roles(staff: Any) -> Iterator[tuple[Any, ...]]:
    from django.contrib.auth.models import User

    from console.accounts import changes, custom_roles
    from console.accounts.models import CustomRole
    from console.frame.access import Role

    role = CustomRole.objects.create(name="payments", permissions=["topics:read"])
    yield (
        "role",
        custom_roles,
        lambda value: custom_roles.change_role(
            staff,
            CustomRole.objects.get(pk=role.pk),
            value,
            role.parsed,
            custom_roles.version(role),
        ),
        lambda: CustomRole.objects.get(pk=role.pk).description,
    )
    named = {value: CustomRole.objects.create(name=value) for value in NEW_VALUES}
    reader = User.objects.create_user("reader")
    yield (
        "roles of a user",
        changes,
        lambda value: changes.set_roles(
            staff,
            User.objects.get(pk=reader.pk),
            Role.VIEWER,
            [named[value]],
            changes.version_of_roles(reader),
        ),
        lambda: ",".join(changes.roles_of(User.objects.get(pk=reader.pk))["roles"]),
    )


def labels() -> tuple[Any, ...]:
    """Both changes are the first of the object."""
    from console.resources import labels
    from console.resources.models import Kind

    def change(value: str) -> None:
        wanted = {"owner": value}
        known = labels.version({})
        labels.change("local", Kind.TOPIC, "orders", "staff", lambda _held: wanted, known)

    return (
        "labels",
        labels,
        change,
        lambda: labels.labels_of("local", Kind.TOPIC, "orders")["owner"],
    )


def administrators() -> tuple[Any, ...]:
    """Each of two administrators takes the role from the other one; the value is whose is gone."""
    from django.contrib.auth.models import User

    from console.accounts import changes
    from console.frame.access import Role

    User.objects.all().delete()
    for value in NEW_VALUES:
        User.objects.create_superuser(value)

    def demote(value: str) -> None:
        other = next(each for each in NEW_VALUES if each != value)
        by, user = (User.objects.get(username=name) for name in (other, value))
        changes.set_roles(by, user, Role.VIEWER, ())

    def demoted() -> str:
        users = User.objects.exclude(profile__role=Role.ADMINISTRATOR).order_by("pk")
        return ",".join(each.get_username() for each in users)

    return "last administrator", changes, demote, demoted


if __name__ == "__main__":
    main()
