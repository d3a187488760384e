"""`python -m benchmarks.replays`: the rate accuracy of a replay of dead letters.

Starts a cluster, fills the dead-letter topic of a group, and runs the job in this process as a
worker would. Prints the duration beside the target: 10,000 dead letters at 500 per second in 20 s ±
10 %. The benchmark measures and asserts nothing: the exit code is 0 unless a step fails.
"""

import asyncio
import os
import tempfile
import time
from pathlib import Path

import click

from core_broker.client import AdminClient
from core_broker.message.model import Message
from core_broker.message.topics import dlq_topic, retry_topic
from core_broker.remoting.bodies import SubscriptionGroupConfig, TopicConfig
from tests.support.cluster import Cluster

LETTERS = 10_000
RATE = 500
GROUP = "replayed"
TOPIC = "replayed-from"
PERM_WRITE = 2
SENDS_AT_ONCE = 32
AIM_RATIO = 0.1


async def fill(cluster: Cluster, letters: int) -> None:
    """Store messages in the dead-letter topic, as a broker does after the last retry."""
    dead = dlq_topic(GROUP)
    gate = asyncio.Semaphore(SENDS_AT_ONCE)
    async with AdminClient(cluster.namesrv_addr) as admin:
        addr = cluster.broker_addr
        await admin.create_group(addr, SubscriptionGroupConfig(group_name=GROUP))
        for name in (dead, retry_topic(GROUP), TOPIC):
            config = TopicConfig(topic_name=name, read_queue_nums=1, write_queue_nums=1)
            config.perm = PERM_WRITE if name == dead else config.perm
            await admin.create_topic(addr, config)

        async def send(number: int) -> None:
            async with gate:
                properties = {"RETRY_TOPIC": TOPIC}
                await admin.send(addr, Message(dead, b"%d" % number, properties=properties), 0)

        await asyncio.gather(*(send(number) for number in range(letters)))


def replay(namesrv_addr: str, rate: int) -> tuple[float, float, dict[str, int]]:
    """Run the job; returns its duration, its CPU time, and its counts."""
    os.environ |= {"DJANGO_SETTINGS_MODULE": "console.settings", "NAMESRV_ADDR": namesrv_addr}
    import django

    django.setup()
    from django.core.management import call_command

    from console.areas.deadletters import replays
    from console.areas.deadletters.models import Replay
    from console.gateway import gateway
    from console.gateway.dead_letters.search import DeadLetterFilter, replay_ranges
    from console.services.jobs import ledger, runner
    from console.services.jobs.models import Origin

    call_command("migrate", verbosity=0)
    [name] = [each.name for each in gateway.clusters()]
    found = gateway.cluster(name).ask(replay_ranges, GROUP, DeadLetterFilter()).value
    row = Replay.objects.create(
        cluster=name,
        group=GROUP,
        batch="00000000-0000-0000-0000-000000000001",
        wish={},
        rate=rate,
        pieces=[list(each) for each in found],
        total=sum(end - begin for _key, begin, end in found),
    )
    inputs = {"replay": row.pk}
    job = ledger.enqueue(
        name, replays.KIND, by=None, origin=Origin.PERSON, scope=GROUP, inputs=inputs
    )
    began, worked = time.monotonic(), time.process_time()
    runner.run(job.pk, notify=lambda _job: None)
    took_s, worked_s = time.monotonic() - began, time.process_time() - worked
    row.refresh_from_db()
    gateway.close()
    return took_s, worked_s, replays.counts(row)


@click.command(context_settings={"show_default": True})
@click.option("--letters", type=int, default=LETTERS, help="Dead letters.")
@click.option("--rate", type=int, default=RATE, help="Dead letters per second.")
def main(letters: int, rate: int) -> None:
    """Measure the rate accuracy of a replay of dead letters."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GANTRY_HOME"] = str(Path(folder) / "home")
        Path(os.environ["GANTRY_HOME"]).mkdir()
        (Path(folder) / "cluster").mkdir()
        with Cluster(Path(folder) / "cluster") as cluster:
            asyncio.run(fill(cluster, letters))
            took_s, worked_s, counts = replay(cluster.namesrv_addr, rate)
    target_s = letters / rate
    off = took_s / target_s - 1
    verdict = "within" if abs(off) <= AIM_RATIO else "outside of"
    print(f"{letters} letters at {rate}/s: {took_s:.1f} s ({off:+.1%}), {verdict} 10 %")
    print(f"{worked_s / letters * 1000:.2f} ms of the worker's processor time for each")
    print(f"matched {counts['matched']}, sent {counts['sent']}, failed {counts['failed']}")


if __name__ == "__main__":
    main()
