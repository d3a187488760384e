"""Give the console of a big cluster the records of months: users and roles, jobs, alarms, audit,
offset resets and replays, rules and schemas of bodies, as many as operators reach or the console
keeps.

GANTRY_HOME=HOME python -m benchmarks.records_load GROUP TOPIC
"""

import os
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

if TYPE_CHECKING:
    from console.services.alarms.models import AlarmRule, Receiver

CLUSTER: Final = "local"
USERS: Final = 500
ROLES: Final = 100
TOKENS: Final = 50
VIEWS: Final = 100
#: The console keeps 200 jobs of a kind.
JOBS_OF_A_KIND: Final = 200
#: The kind of jobs whose newest job has a file.
EXPORT: Final = "export"
#: As many as the console keeps.
EPISODES: Final = 20_000
FIRING: Final = 500
DELIVERIES: Final = 20_000
SILENCES: Final = 100
RULES: Final = 50
RECEIVERS: Final = 20
AUDIT_ROWS: Final = 50_000
RESETS: Final = 100
REPLAYS: Final = 20
RESENDS: Final = 5_000
MASKING_RULES: Final = 20
SCHEMAS: Final = 20
MINUTE_MS: Final = 60_000
BATCH: Final = 1_000
AVRO: Final = b"""{"type": "record", "name": "Order", "fields": [
  {"name": "id", "type": "long"}, {"name": "customer", "type": "string"}]}"""


def main(group: str, topic: str) -> None:
    """Store the records; `group` gets the offset resets and replays."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    import django

    django.setup()
    now = datetime.now(UTC)
    add_people()
    add_jobs(group, now)
    add_alarms(time.time_ns() // 1_000_000)
    add_audit_rows(now)
    add_dead_letter_work(group, topic)
    add_body_rules(time.time_ns() // 1_000_000)


def add_people() -> None:
    """Users with roles, and tokens and saved views of `admin`."""
    from django.contrib.auth.models import User
    from knox.models import AuthToken

    from console.accounts.models import CustomRole, Profile, TokenFacts
    from console.services.search.models import SavedView

    roles = CustomRole.objects.bulk_create(
        CustomRole(
            name=f"role-{number:03d}",
            description=f"Topics of team {number}",
            permissions=[f"topics:read:topic-{number:03d}*", f"groups:write:group-{number:03d}*"],
        )
        for number in range(ROLES)
    )
    users = User.objects.bulk_create(
        User(username=f"person-{number:03d}", password="!", is_active=True)
        for number in range(USERS)
    )
    # A signal may have made the profiles of single saves only.
    profiles = Profile.objects.bulk_create(Profile(user=user) for user in users)
    links = Profile.roles.through
    links.objects.bulk_create(
        links(profile_id=profile.pk, customrole_id=roles[number % ROLES].pk)
        for number, profile in enumerate(profiles)
    )
    admin = User.objects.get(username="admin")
    for number in range(TOKENS):
        token, _text = AuthToken.objects.create(user=admin)
        TokenFacts.objects.create(token=token, name=f"token-{number}", role="viewer")
    SavedView.objects.bulk_create(
        SavedView(
            owner=admin,
            name=f"view {number}",
            address=f"/clusters/{CLUSTER}/topics/?q={number:03d}",
            cluster=CLUSTER,
            is_shared=number % 2 == 0,
        )
        for number in range(VIEWS)
    )


def add_jobs(group: str, now: datetime) -> None:
    """Finished jobs of every kind; the newest export has a file."""
    from console.services.jobs import files, kinds
    from console.services.jobs.models import Job

    jobs = [
        Job(
            cluster=CLUSTER,
            kind=kind.name,
            scope=group if number % 2 else "",
            state="failed" if number % 7 == 0 else "succeeded",
            error="The broker did not answer." if number % 7 == 0 else "",
            created_at=(at := now - timedelta(minutes=10 * number)),
            started_at=at,
            finished_at=at + timedelta(seconds=30),
            heartbeat_at=at,
            percent=100,
            done=1_000,
            total=1_000,
            inputs={"topic": "topic-00000"},
            outputs={"rows": 1_000},
        )
        for number in range(JOBS_OF_A_KIND)
        for kind in kinds.known()
    ]
    Job.objects.bulk_create(reversed(jobs), batch_size=BATCH)
    newest = Job.objects.filter(kind=EXPORT).latest("created_at")
    with files.writing(newest.pk, "messages.jsonl") as file:
        file.write(b'{"topic": "topic-00000"}\n' * 1_000)


def add_alarms(now_ms: int) -> None:
    """Rules, receivers, silences, firing and resolved episodes, and their deliveries."""
    from console.services.alarms.models import AlarmRule, Receiver, Silence

    common: dict[str, Any] = {"changed_ms": now_ms, "changed_by": "admin"}
    receivers = Receiver.objects.bulk_create(
        Receiver(name=f"receiver-{number}", kind="webhook", enabled=False, **common)
        for number in range(RECEIVERS)
    )
    rules = AlarmRule.objects.bulk_create(
        AlarmRule(
            name=f"lag of group-{number:03d}*",
            pattern=f"group-{number:03d}*",
            source="metric",
            scope="group",
            metric="lag",
            threshold=1e9,
            severity="warning",
            **common,
        )
        for number in range(RULES)
    )

    add_episodes(rules, now_ms)
    add_deliveries(rules, receivers, now_ms)
    Silence.objects.bulk_create(
        Silence(
            cluster=CLUSTER,
            pattern=f"group-{number:03d}*",
            reason="maintenance",
            begin_ms=now_ms - MINUTE_MS,
            until_ms=now_ms + 600 * MINUTE_MS,
            created_by="admin",
        )
        for number in range(SILENCES)
    )


def add_episodes(rules: Sequence["AlarmRule"], now_ms: int) -> None:
    """Firing and resolved episodes of rules, the newest last."""
    from console.services.alarms.models import Episode

    def episode(number: int) -> Episode:
        begun_ms = now_ms - 6 * MINUTE_MS * number
        is_firing = number < FIRING
        return Episode(
            # Of no rule: the evaluation beside the requests resolves what its rules do not meet.
            rule=None if is_firing else rules[number % RULES],
            rule_name=rules[number % RULES].name,
            cluster=CLUSTER,
            kind="group",
            name=f"group-{number % 5_000:05d}",
            severity=("warning", "critical")[number % 2],
            state="firing" if is_firing else "resolved",
            begun_ms=begun_ms,
            fired_ms=begun_ms + MINUTE_MS,
            seen_ms=now_ms if is_firing else begun_ms + 5 * MINUTE_MS,
            resolved_ms=None if is_firing else begun_ms + 5 * MINUTE_MS,
            value=float(number),
            text={"en": "Lag 100,000 is above 10,000.", "zh-hans": "堆积 100,000 大于 10,000。"},
            notified_ms=begun_ms + MINUTE_MS,
        )

    Episode.objects.bulk_create(map(episode, reversed(range(EPISODES))), batch_size=BATCH)


def add_deliveries(
    rules: Sequence["AlarmRule"], receivers: Sequence["Receiver"], now_ms: int
) -> None:
    """Sent notices, the newest last."""
    from console.services.alarms.models import Delivery

    Delivery.objects.bulk_create(
        (
            Delivery(
                receiver=receivers[number % RECEIVERS],
                receiver_name=receivers[number % RECEIVERS].name,
                rule=rules[number % RULES],
                rule_name=rules[number % RULES].name,
                cluster=CLUSTER,
                severity="warning",
                event=("firing", "resolved")[number % 2],
                created_ms=(at_ms := now_ms - 3 * MINUTE_MS * number),
                due_ms=at_ms,
                attempts=1,
                state="sent",
                finished_ms=at_ms + 200,
            )
            for number in reversed(range(DELIVERIES))
        ),
        batch_size=BATCH,
    )


def add_audit_rows(now: datetime) -> None:
    """Changes by many people."""
    from console.audit.models import AuditRow

    actions = ("topic.change", "group.change", "offsets.reset", "message.send", "labels.change")
    rows = (
        AuditRow(
            at=(at := now - timedelta(minutes=number)),
            finished_at=at + timedelta(milliseconds=20),
            username=f"person-{number % USERS:03d}",
            role="operator",
            via="page",
            source="10.0.0.1",
            action=actions[number % len(actions)],
            cluster=CLUSTER,
            target=f"topic-{number % 5_000:05d}",
            before={"perm": 6, "queues": 4},
            after={"perm": 6, "queues": 8},
            result="failed" if number % 20 == 0 else "done",
        )
        for number in reversed(range(AUDIT_ROWS))
    )
    AuditRow.house.bulk_create(rows, batch_size=BATCH)


def add_dead_letter_work(group: str, topic: str) -> None:
    """Offset resets and replays of a group; the last replay with the outcome of each message."""
    from console.areas.deadletters.models import Replay, Resend
    from console.areas.offsets.models import OffsetReset

    queues = [
        {"broker": "broker-a", "queue_id": number, "old": 10, "new": 5, "moved": True}
        for number in range(4)
    ]
    OffsetReset.objects.bulk_create(
        OffsetReset(
            cluster=CLUSTER, group=group, topic=topic, goal="time", online=True, queues=queues
        )
        for _ in range(RESETS)
    )
    replays = Replay.objects.bulk_create(
        Replay(
            cluster=CLUSTER,
            group=group,
            batch=UUID(int=number + 1),
            wish={"filter": {}, "target": "retry", "edit": {}, "again": False},
            rate=100,
            pieces=[],
            total=RESENDS,
            looked_at=RESENDS,
            matched=RESENDS,
            sent=RESENDS,
        )
        for number in range(REPLAYS)
    )
    Resend.objects.bulk_create(_resends(group, topic, replays[-1].batch), batch_size=BATCH)


def _resends(group: str, topic: str, batch: UUID) -> Iterable[Any]:
    from console.areas.deadletters.models import Resend

    return (
        Resend(
            cluster=CLUSTER,
            group=group,
            offset_msg_id=f"{number:032X}",
            died_ms=1,
            batch=batch,
            msg_id=f"{number:032X}",
            target="retry",
            topic=topic,
            result="sent",
            new_offset_msg_id=f"{number:032X}",
        )
        for number in range(RESENDS)
    )


def add_body_rules(now_ms: int) -> None:
    """Masking rules and body schemas of other topics than the cluster's."""
    from console.services.masking.models import MaskingRule
    from console.services.schemas.models import BodyRule, BodySchema

    common: dict[str, Any] = {"changed_ms": now_ms, "changed_by": "admin"}
    MaskingRule.objects.bulk_create(
        MaskingRule(
            name=f"cards {number}", topic=f"cards-{number}-*", kind="json", expression="$.card",
            **common,
        )
        for number in range(MASKING_RULES)
    )  # fmt: skip
    schemas = BodySchema.objects.bulk_create(
        BodySchema(
            cluster=CLUSTER, name=f"order-{number}", format="avro", content=AVRO,
            digest=f"{number:064x}", size_bytes=len(AVRO), type_count=1, **common,
        )
        for number in range(SCHEMAS)
    )  # fmt: skip
    BodyRule.objects.bulk_create(
        BodyRule(
            schema=schema, topic=f"avro-{schema.name}-*", framing="raw", cluster=CLUSTER, **common
        )
        for schema in schemas
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
