"""Give every topic and group of a big cluster labels, in the console's database.

GANTRY_HOME=HOME python -m benchmarks.label_load TOPICS GROUPS
"""

import os
import sys
import time
from collections.abc import Iterator
from itertools import chain

from benchmarks.big_cluster import Size

CLUSTER = "local"
TEAMS, OWNERS, TIERS = 20, 200, ("gold", "silver", "tin")


def main(size: Size) -> None:
    """Store the labels."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    import django

    django.setup()
    from console.resources.models import LabelSet

    now_ms = time.time_ns() // 1_000_000
    LabelSet.objects.bulk_create(
        (
            LabelSet(
                cluster=CLUSTER,
                kind=kind,
                name=name,
                labels=labels_of(number),
                changed_ms=now_ms,
                changed_by="benchmark",
            )
            for number, kind, name in names(size)
        ),
        batch_size=1_000,
    )


def names(size: Size) -> Iterator[tuple[int, str, str]]:
    """Number, kind and name of each topic and group."""
    return chain(
        ((number, "topic", size.topic(number)) for number in range(size.topics)),
        ((number, "group", size.group(number)) for number in range(size.groups)),
    )


def labels_of(number: int) -> dict[str, str]:
    """The five labels of a topic or group."""
    return {
        "team": f"team-{number % TEAMS}",
        "owner": f"owner-{number % OWNERS}@example.org",
        "tier": TIERS[number % len(TIERS)],
        "runbook": f"https://wiki.example.org/runbooks/{number}",
        "cost.centre": str(number),
    }


if __name__ == "__main__":
    main(Size(int(sys.argv[1]), int(sys.argv[2])))
