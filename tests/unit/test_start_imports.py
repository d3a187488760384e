"""What name server and broker import until they are ready: a start pays for every module.

A start of both takes about 0.3 s on a quiet machine, nearly all of it imports. A module of this
list belongs to a feature that is off by default, or to a path that most starts never take.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from core_broker.config import property_text

DEADLINE_S = 180
#: Module, with the modules below it → who needs it.
HEAVY = {
    "click": "options apart from -c and -n",
    "core_broker.auth.acl2.owner": "users, with authenticationEnabled",
    "core_broker.auth.users_file": "users, with authenticationEnabled",
    "core_broker.auth.users_processor": "users, with authenticationEnabled",
    "core_broker.client": "innerClientAuthenticationCredentials, and clients",
    "core_broker.config.command_line": "options apart from -c and -n",
    "core_broker.config.controller": "the controller, as a program",
    "core_broker.controller": "enableControllerInNamesrv",
    "core_broker.broker.dledger_roles": "enableDLegerCommitLog",
    "core_broker.dledger.member": "enableDLegerCommitLog",
    "core_broker.broker.replica_manager": "enableControllerMode",
    "core_broker.ha.switch_replication": "enableControllerMode",
    "core_broker.filter.sql92": "filters by properties",
    "core_broker.ha.slave": "brokerRole=SLAVE",
    "core_broker.raft": "controllers",
    "core_broker.raft_member": "controllers, and members of a DLedger group",
    "core_broker.yaml_nodes": "ACL 1.0",
    "cryptography": "encrypted passwords",
    "unittest": "tests",
    "xml": "nobody",
    "yaml": "ACL 1.0",
}
#: Further modules that a name server needs none of.
HEAVY_IN_NAMESRV = {
    "core_broker.auth": "access control",
    "core_broker.config.broker": "brokers: the largest class of the settings",
    "core_broker.processors": "brokers",
    "core_broker.state": "brokers",
    "core_broker.store": "brokers, and controllers",
    "tempfile": "the certificate of the TLS test mode",
}
IMPORTED = re.compile(r"^import time: +\d+ \| +\d+ \| +(?P<name>\S+)$", re.MULTILINE)


def imported_until_ready(module: str, conf: Path) -> set[str]:
    errors = conf.with_suffix(".log")
    with errors.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", module, "-c", str(conf)],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={k: v for k, v in os.environ.items() if not k.startswith(("ROCKETMQ_", "NAMESRV"))},
        )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if "boot success" in line:
                return set(IMPORTED.findall(errors.read_text()))
        raise AssertionError(errors.read_text()[-2000:])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(DEADLINE_S)
        process.stdout.close()


def settings(tmp_path: Path, **values: object) -> Path:
    conf = tmp_path / "start.conf"
    common = {"bindAddress": "127.0.0.1", "listenPort": 0, "httpPort": 0}
    lines = (f"{key}={property_text(value)}\n" for key, value in {**common, **values}.items())
    conf.write_text("".join(lines))
    return conf


def found(imported: set[str], *lists: dict[str, str]) -> dict[str, str]:
    """Return the heavy modules of the import, each with who needs it."""
    return {
        name: reason
        for each in lists
        for name, reason in each.items()
        if any(module == name or module.startswith(f"{name}.") for module in imported)
    }


def test_a_name_server_imports_nothing_heavy(tmp_path: Path) -> None:
    conf = settings(tmp_path, kvConfigPath=tmp_path / "kvConfig.json")
    imported = imported_until_ready("namesrv", conf)
    assert "namesrv.server" in imported
    assert not found(imported, HEAVY, HEAVY_IN_NAMESRV)


def test_a_broker_imports_nothing_heavy(tmp_path: Path) -> None:
    conf = settings(
        tmp_path,
        brokerName="b",
        brokerIP1="127.0.0.1",
        brokerIP2="127.0.0.1",
        storePathRootDir=tmp_path / "store",
    )
    imported = imported_until_ready("core_broker", conf)
    assert "core_broker.store.message_store" in imported
    assert not found(imported, HEAVY)


def test_a_feature_of_the_list_is_found_when_it_is_on(tmp_path: Path) -> None:
    conf = settings(tmp_path, kvConfigPath=tmp_path / "kvConfig.json", authenticationEnabled=True)
    imported = imported_until_ready("namesrv", conf)
    assert "core_broker.auth.users_file" in found(imported, HEAVY)
