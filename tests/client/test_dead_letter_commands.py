"""docs/operations.md: the documented commands make dead letters readable for other tools."""

import secrets
from pathlib import Path

import pytest

from tests.client.mqadmin_runs import Mqadmin
from tests.client.receiving import ClusterAddrs
from tests.support.document_blocks import blocks_of

COMMANDS = [
    line.split()[1:]
    for block in blocks_of("docs/operations.md")
    if Path(__file__).name in block.runner
    for line in block.code.splitlines()
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_documented_command_is_accepted(quick_cluster: ClusterAddrs, command: list[str]) -> None:
    mqadmin = Mqadmin(quick_cluster.namesrv_addr)
    topic = f"%DLQ%readable-{secrets.token_hex(3)}"
    on_broker = ("-b", quick_cluster.broker_addr)
    mqadmin("updateTopic", *on_broker, "-t", topic, "-r", "1", "-w", "1", "-p", "2")
    mqadmin("sendMessage", "-t", topic, "-p", "dead")
    read = ("printMsg", "-t", topic, "-d", "true")
    assert "dead" not in mqadmin(*read).stdout.replace(topic, "")
    mqadmin(*(topic if word == "%DLQ%accounting" else word for word in command))
    if command[0] == "updateTopicPerm":
        assert "dead" in mqadmin(*read).stdout.replace(topic, "")
    else:
        config = mqadmin.document("getBrokerConfig", *on_broker)
        assert '"dlqTopicPerm": "6"' in str(config).replace("'", '"')
        mqadmin("updateBrokerConfig", *on_broker, "-k", "dlqTopicPerm", "-v", "2")


def test_the_section_has_one_setting_and_one_command() -> None:
    assert [command[0] for command in COMMANDS] == ["updateBrokerConfig", "updateTopicPerm"]
