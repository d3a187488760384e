"""Controllers: leader and members, elections, removal of replicas, settings.

Compatible with the commands of RocketMQ 5.3.3's package tools.command.controller. An option -a may
list several controllers, also where RocketMQ's takes one: the first that answers names the leader.
"""

from functools import partial

from core_broker.errors import ClientError, GantryError
from core_broker.mqadmin.command import (
    LONG_MAX,
    command,
    number,
    split_addresses,
    switch,
    text,
)
from core_broker.mqadmin.java_texts import java
from core_broker.mqadmin.session import Session
from core_broker.mqadmin.settings_lines import settings_lines


@command("getControllerMetaData")
@text("-a", "--controllerAddress", required=True, help="the address of controller")
async def get_controller_meta_data(session: Session, controller_address: str) -> None:
    """Prints group, leader and members of the controllers."""
    found = await session.admin.controller_metadata(split_addresses(controller_address))
    peers = [peer for peer in found.peers.split(";") if peer]
    document = {
        "controllerGroup": found.group,
        "controllerLeaderId": found.controller_leader_id,
        "controllerLeaderAddress": found.controller_leader_address,
        "peers": peers,
    }
    lines = [
        "",
        f"#ControllerGroup\t{found.group}",
        f"#ControllerLeaderId\t{java(found.controller_leader_id)}",
        f"#ControllerLeaderAddress\t{java(found.controller_leader_address)}",
        *(f"#Peer:\t{peer}" for peer in peers),
    ]
    session.out.show(document, lines)


@command("electMaster", destructive=True)
@text("-a", "--controllerAddress", required=True, help="The address of controller")
@number(
    "-b",
    "--brokerId",
    high=LONG_MAX,
    required=True,
    help="The id of the broker which requires to become master",
)
@text(
    "-bn",
    "--brokerName",
    required=True,
    help="The broker name of the replicas that require to be manipulated",
)
@text("-c", "--clusterName", required=True, help="the clusterName of broker")
async def elect_master(
    session: Session, controller_address: str, broker_id: int, broker_name: str, cluster_name: str
) -> None:
    """Makes a replica of the sync-state set the master. Writes stop until it has taken over."""
    document = {"clusterName": cluster_name, "brokerName": broker_name, "dryRun": session.dry_run}
    if session.dry_run:
        line = f"[dry run] broker {broker_id} of {broker_name} becomes master"
        session.out.show({**document, "brokerId": broker_id}, [line])
        return
    header, body = await session.admin.elect_master(
        split_addresses(controller_address), cluster_name, broker_name, broker_id
    )
    group = body.broker_member_group
    document |= {
        "masterBrokerId": header.master_broker_id,
        "masterAddress": header.master_address,
        "masterEpoch": header.master_epoch,
        "syncStateSetEpoch": header.sync_state_set_epoch,
        "syncStateSet": body.sync_state_set,
        "brokerAddrs": {} if group is None else group.broker_addrs,
    }
    lines = [
        "",
        f"#ClusterName\t{cluster_name}",
        f"#BrokerName\t{broker_name}",
        f"#BrokerMasterAddr\t{java(header.master_address)}",
        f"#MasterEpoch\t{java(header.master_epoch)}",
        f"#SyncStateSetEpoch\t{java(header.sync_state_set_epoch)}",
    ]
    session.out.show(document, lines)


@command("cleanBrokerMetadata", destructive=True)
@text("-a", "--controllerAddress", required=True, help="The address of controller")
@text(
    "-b",
    "--brokerControllerIdsToClean",
    help="The brokerController id list which requires to clean metadata. eg: 1;2;3, means that "
    "clean broker-1, broker-2 and broker-3",
)
@text(
    "-bn",
    "--brokerName",
    required=True,
    help="The broker name of the replicas that require to be manipulated",
)
@text("-c", "--clusterName", help="The clusterName of broker")
@switch("-l", "--cleanLivingBroker", help="Whether clean up living brokers,default value is false")
async def clean_broker_metadata(
    session: Session,
    controller_address: str,
    broker_controller_ids_to_clean: str | None,
    broker_name: str,
    cluster_name: str | None,
    clean_living_broker: bool,
) -> None:
    """Makes the controllers forget replicas that will not return; without -b the whole name."""
    ids = broker_controller_ids_to_clean
    if not clean_living_broker and not cluster_name:
        raise ClientError("Without -l/--cleanLivingBroker, give -c/--clusterName.")
    if ids is not None and not all(part.isdecimal() for part in split_addresses(ids)):
        raise ClientError(f"-b/--brokerControllerIdsToClean expects ids as in 1;2;3, not {ids!r}.")
    await session.change(
        f"clear broker {broker_name} metadata from controller success! ",
        partial(
            session.admin.clean_broker_data,
            split_addresses(controller_address),
            broker_name,
            cluster=cluster_name,
            broker_ids=ids,
            cleans_living=clean_living_broker,
        ),
    )
    document = {"brokerName": broker_name, "brokerIds": ids, "dryRun": session.dry_run}
    session.out.show_json(document)


_LIST_HELP = "Controller address list, eg: 192.168.0.1:9878;192.168.0.2:9878"


@command("getControllerConfig")
@text("-a", "--controllerAddress", required=True, help=_LIST_HELP)
async def get_controller_config(session: Session, controller_address: str) -> None:
    """Prints the settings of each controller of the list."""
    configs, lines = {}, []
    for addr in split_addresses(controller_address):
        try:
            configs[addr] = await session.admin.controller_config(addr)
        except GantryError as error:
            session.failed(error)
            continue
        lines += [f"============{addr}============", *settings_lines(configs[addr])]
    session.out.show({"controllers": configs}, lines)


@command("updateControllerConfig", destructive=True)
@text("-a", "--controllerAddress", required=True, help=_LIST_HELP)
@text("-k", "--key", required=True, help="config key")
@text("-v", "--value", required=True, help="config value")
async def update_controller_config(
    session: Session, controller_address: str, key: str, value: str
) -> None:
    """Changes the setting on each controller of the list."""
    updated: list[str] = []
    for addr in split_addresses(controller_address):
        try:
            if not session.dry_run:
                await session.admin.update_controller_config(addr, {key: value})
        except GantryError as error:
            session.failed(error)
        else:
            updated.append(addr)
    mark = "[dry run] " if session.dry_run else ""
    text = f"{mark}update controller config success![{', '.join(updated)}]\n{key} : {value}"
    document = {"updated": updated, "key": key, "value": value, "dryRun": session.dry_run}
    session.out.show(document, [text] if updated else [])
