"""Replicas of broker sets: their sync-state sets, and the epochs of their commit logs.

Compatible with GetSyncStateSetSubCommand and GetBrokerEpochSubCommand of RocketMQ 5.3.3.
"""

from collections.abc import Iterator, Sequence

from core_broker.errors import ClientError, GantryError
from core_broker.mqadmin.command import command, number, rounds, split_addresses, text
from core_broker.mqadmin.java_texts import java
from core_broker.mqadmin.lookup import brokers_of_cluster, cluster_addrs
from core_broker.mqadmin.polling import poll
from core_broker.mqadmin.session import NotFound, Session
from core_broker.remoting.bodies.replicas import EpochEntryCache, ReplicaIdentity, ReplicasEntry


@command("getSyncStateSet")
@text("-a", "--controllerAddress", required=True, help="the address of controller")
@text("-c", "--clusterName", help="which cluster")
@text("-b", "--brokerName", help="which broker to fetch")
@number("-i", "--interval", high=86_400, help="the interval(second) of get info")
@rounds()
async def get_sync_state_set(
    session: Session,
    controller_address: str,
    cluster_name: str | None,
    broker_name: str | None,
    interval: int | None,
    rounds: int,
) -> None:
    """Prints the replicas of one broker name, or of all names of a cluster."""
    controllers = split_addresses(controller_address)
    async for _ in poll(interval, rounds):
        names = await _broker_names(session, broker_name, cluster_name)
        found = (await session.admin.sync_state_sets(controllers, names)).replicas_info_table
        for missing in [name for name in names if name not in found]:
            session.failed(NotFound(f"The controllers know no broker set {missing}."))
        lines = [line for name, entry in sorted(found.items()) for line in _set_lines(name, entry)]
        session.out.show({"brokers": found}, lines)


@command("getBrokerEpoch")
@text("-c", "--clusterName", help="which cluster")
@text("-b", "--brokerName", help="which broker to fetch")
@number("-i", "--interval", high=86_400, help="the interval(second) of get info")
@rounds()
async def get_broker_epoch(
    session: Session,
    cluster_name: str | None,
    broker_name: str | None,
    interval: int | None,
    rounds: int,
) -> None:
    """Prints the epochs of all replicas of one broker name, or of all brokers of a cluster."""
    async for _ in poll(interval, rounds):
        epochs, lines = {}, []
        for addr in await _addrs(session, broker_name, cluster_name):
            try:
                found = epochs[addr] = await session.admin.epochs(addr)
            except GantryError as error:
                session.failed(error)
                continue
            if found.epoch_list:
                found.epoch_list[-1].end_offset = found.max_offset
            lines += list(_epoch_lines(addr, found))
        session.out.show({"brokers": epochs}, lines)


async def _broker_names(
    session: Session, broker_name: str | None, cluster_name: str | None
) -> Sequence[str]:
    if broker_name:
        return [broker_name]
    if not cluster_name:
        raise ClientError("Give one of -b/--brokerName and -c/--clusterName.")
    info = await session.admin.cluster_info()
    return [broker.broker_name for broker in brokers_of_cluster(info, cluster_name)]


async def _addrs(
    session: Session, broker_name: str | None, cluster_name: str | None
) -> Sequence[str]:
    if not broker_name:
        if not cluster_name:
            raise ClientError("Give one of -b/--brokerName and -c/--clusterName.")
        return await cluster_addrs(session.admin, cluster_name)
    broker = (await session.admin.cluster_info()).broker_addr_table.get(broker_name)
    if broker is None:
        raise NotFound(f"The name server knows no broker {broker_name}.")
    return [addr for _, addr in sorted(broker.broker_addrs.items())]


def _set_lines(name: str, entry: ReplicasEntry) -> Iterator[str]:
    yield ""
    yield f"#brokerName\t{name}"
    yield f"#MasterBrokerId\t{java(entry.master_broker_id)}"
    yield f"#MasterAddr\t{java(entry.master_address)}"
    yield f"#MasterEpoch\t{entry.master_epoch}"
    yield f"#SyncStateSetEpoch\t{entry.sync_state_set_epoch}"
    yield f"#SyncStateSetNums\t{len(entry.in_sync_replicas)}"
    for replica in entry.in_sync_replicas:
        yield from ("", f"InSyncReplica:\t{_replica_text(replica)}")
    for replica in entry.not_in_sync_replicas:
        yield from ("", f"NotInSyncReplica:\t{_replica_text(replica)}")


def _replica_text(replica: ReplicaIdentity) -> str:
    return (
        f"ReplicaIdentity{{brokerName='{replica.broker_name}', brokerId={replica.broker_id}, "
        f"brokerAddress='{replica.broker_address}', alive={java(replica.alive)}}}"
    )


def _epoch_lines(addr: str, found: EpochEntryCache) -> Iterator[str]:
    yield ""
    yield f"#clusterName\t{found.cluster_name}"
    yield f"#brokerName\t{found.broker_name}"
    yield f"#brokerAddr\t{addr}"
    yield f"#brokerId\t{found.broker_id}"
    for entry in found.epoch_list:
        yield (
            f"#Epoch: EpochEntry{{epoch={entry.epoch}, startOffset={entry.start_offset}, "
            f"endOffset={entry.end_offset}}}"
        )
