"""Having brokers delete what is no longer needed."""

from collections.abc import Awaitable, Callable

from core_broker.errors import GantryError
from core_broker.mqadmin.command import command, text
from core_broker.mqadmin.lookup import cluster_addrs
from core_broker.mqadmin.session import Session


@command("cleanExpiredCQ", destructive=True)
@text("-b", "--brokerAddr", help="Broker address")
@text("-c", "--cluster", help="clustername")
async def clean_expired_cq(session: Session, broker_addr: str | None, cluster: str | None) -> None:
    """Consume-queue files that point before the commit log."""
    await _clean(session, broker_addr, cluster, session.admin.clean_expired_consume_queue)


@command("cleanUnusedTopic", destructive=True)
@text("-b", "--brokerAddr", help="Broker address")
@text("-c", "--cluster", help="cluster name")
async def clean_unused_topic(
    session: Session, broker_addr: str | None, cluster: str | None
) -> None:
    """Queues of topics that the broker no longer has."""
    await _clean(session, broker_addr, cluster, session.admin.clean_unused_topic)


@command("deleteExpiredCommitLog", destructive=True)
@text("-b", "--brokerAddr", help="Broker address")
@text("-c", "--cluster", help="clustername")
async def delete_expired_commit_log(
    session: Session, broker_addr: str | None, cluster: str | None
) -> None:
    """Commit-log files that are older than fileReservedTime."""
    await _clean(session, broker_addr, cluster, session.admin.delete_expired_commit_log)


async def _clean(
    session: Session,
    broker_addr: str | None,
    cluster: str | None,
    clean: Callable[[str], Awaitable[None]],
) -> None:
    """On one broker, a cluster's, or every one; one that fails does not stop the others."""
    addrs = [broker_addr] if broker_addr else await cluster_addrs(session.admin, cluster)
    done = []
    for addr in addrs:
        try:
            if not session.dry_run:
                await clean(addr)
        except GantryError as error:
            session.failed(error)
        else:
            done.append(addr)
    word = "success" if done and len(done) == len(addrs) else "false"
    line = f"[dry run] on {', '.join(done)}" if session.dry_run else word
    session.out.show({"cleaned": done, "dryRun": session.dry_run}, [line])
