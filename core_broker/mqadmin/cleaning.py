"""Deletion of expired consume queues, unused topics and expired commit-log files by brokers."""

from collections.abc import Awaitable, Callable

from core_broker.errors import GantryError
from core_broker.mqadmin.command import command, text
from core_broker.mqadmin.lookup import masters_and_slaves
from core_broker.mqadmin.session import Session


@command("cleanExpiredCQ", destructive=True)
@text("-b", "--brokerAddr", help="Broker address")
@text("-c", "--cluster", help="clustername")
async def clean_expired_cq(session: Session, broker_addr: str | None, cluster: str | None) -> None:
    """Deletes consume-queue files that point below the commit log's minimum offset."""
    await _clean(session, broker_addr, cluster, session.admin.clean_expired_consume_queue)


@command("cleanUnusedTopic", destructive=True)
@text("-b", "--brokerAddr", help="Broker address")
@text("-c", "--cluster", help="cluster name")
async def clean_unused_topic(
    session: Session, broker_addr: str | None, cluster: str | None
) -> None:
    """Deletes consume queues of topics without a topic configuration."""
    await _clean(session, broker_addr, cluster, session.admin.clean_unused_topic)


@command("deleteExpiredCommitLog", destructive=True)
@text("-b", "--brokerAddr", help="Broker address")
@text("-c", "--cluster", help="clustername")
async def delete_expired_commit_log(
    session: Session, broker_addr: str | None, cluster: str | None
) -> None:
    """Deletes commit-log files older than fileReservedTime."""
    await _clean(session, broker_addr, cluster, session.admin.delete_expired_commit_log)


async def _clean(
    session: Session,
    broker_addr: str | None,
    cluster: str | None,
    clean: Callable[[str], Awaitable[None]],
) -> None:
    """Clean one broker, all brokers of a cluster, or all brokers; go on after a failure."""
    addrs = await masters_and_slaves(session.admin, broker_addr, cluster)
    cleaned = []
    for addr in addrs:
        try:
            if not session.dry_run:
                await clean(addr)
        except GantryError as error:
            session.failed(error)
        else:
            cleaned.append(addr)
    word = "success" if cleaned and len(cleaned) == len(addrs) else "false"
    line = f"[dry run] on {', '.join(cleaned)}" if session.dry_run else word
    session.out.show({"cleaned": cleaned, "dryRun": session.dry_run}, [line])
