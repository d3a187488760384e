"""Name servers: KV configuration, name server settings, write permission of brokers.

Name servers do not replicate changes: a change goes to each name server of -n.
"""

from collections.abc import Awaitable, Callable
from functools import partial

from core_broker.errors import GantryError
from core_broker.mqadmin.command import command, text
from core_broker.mqadmin.session import Session
from core_broker.mqadmin.settings_lines import settings_lines


@command("updateKvConfig")
@text("-s", "--namespace", required=True, help="set the namespace")
@text("-k", "--key", required=True, help="set the key name")
@text("-v", "--value", required=True, help="set the key value")
async def update_kv_config(session: Session, namespace: str, key: str, value: str) -> None:
    await session.admin.kv_put(namespace, key, value)
    document = {"namespace": namespace, "key": key, "value": value}
    session.out.show(document, ["create or update kv config to namespace success."])


@command("deleteKvConfig", destructive=True)
@text("-s", "--namespace", required=True, help="set the namespace")
@text("-k", "--key", required=True, help="set the key name")
async def delete_kv_config(session: Session, namespace: str, key: str) -> None:
    await session.change(
        "delete kv config from namespace success.",
        partial(session.admin.kv_delete, namespace, key),
    )
    session.out.show_json({"namespace": namespace, "key": key, "dryRun": session.dry_run})


@command("getNamesrvConfig")
async def get_namesrv_config(session: Session) -> None:
    """Prints the settings of each name server."""
    configs, lines = {}, []
    for addr in session.admin.namesrv_addrs:
        try:
            configs[addr] = await session.admin.namesrv_config(addr)
        except GantryError as error:
            session.failed(error)
            continue
        lines += [f"============{addr}============", *settings_lines(configs[addr])]
    session.out.show({"nameServers": configs}, lines)


@command("updateNamesrvConfig", destructive=True)
@text("-k", "--key", required=True, help="config key")
@text("-v", "--value", required=True, help="config value")
async def update_namesrv_config(session: Session, key: str, value: str) -> None:
    """Changes the setting on each name server."""
    addrs = session.admin.namesrv_addrs
    text = f"update name server config success![{', '.join(addrs)}]\n{key} : {value}"
    await session.change(text, partial(session.admin.update_namesrv_config, {key: value}))
    document = {"updated": addrs, "key": key, "value": value, "dryRun": session.dry_run}
    session.out.show_json(document)


@command("wipeWritePerm", destructive=True)
@text("-b", "--brokerName", required=True, help="broker name")
async def wipe_write_perm(session: Session, broker_name: str) -> None:
    """Producers stop sending to the broker after their next route update."""
    await _change_perm(session, "wipe", broker_name, session.admin.wipe_write_perm)


@command("addWritePerm", destructive=True)
@text("-b", "--brokerName", required=True, help="broker name")
async def add_write_perm(session: Session, broker_name: str) -> None:
    """Undo wipeWritePerm."""
    await _change_perm(session, "add", broker_name, session.admin.add_write_perm)


async def _change_perm(
    session: Session,
    word: str,
    broker_name: str,
    change: Callable[[str, str], Awaitable[int]],
) -> None:
    records, lines = [], []
    for addr in session.admin.namesrv_addrs:
        line = f"{word} write perm of broker[{broker_name}] in name server[{addr}]"
        if session.dry_run:
            lines.append(f"[dry run] {line}")
            continue
        try:
            count = await change(broker_name, addr)
        except GantryError as error:
            lines.append(f"{line} Failed")
            session.failed(error)
            continue
        lines.append(f"{line} OK, {count}")
        records.append({"nameServer": addr, "topicCount": count})
    document = {"brokerName": broker_name, "changed": records, "dryRun": session.dry_run}
    session.out.show(document, lines)
