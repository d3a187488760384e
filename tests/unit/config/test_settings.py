"""The tables of settings: keys as RocketMQ spells them, defaults of 4.9.8, frozen values."""

from dataclasses import FrozenInstanceError, fields

import pytest

from console.launcher import ports
from core_broker.config import BrokerConfig, NamesrvConfig, java_key


def test_keys_have_rocketmqs_spelling() -> None:
    keys = BrokerConfig.keys()
    assert keys["brokerIP1"].name == "broker_ip1"
    assert keys["checkCRCOnRecover"].name == "check_crc_on_recover"
    assert keys["osPageCacheBusyTimeOutMills"].name == "os_page_cache_busy_time_out_mills"
    assert len(keys) == len(fields(BrokerConfig))
    assert java_key("flush_disk_type") == "flushDiskType"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("brokerClusterName", "DefaultCluster"),
        ("listenPort", "10911"),
        ("defaultTopicQueueNums", "8"),
        ("registerBrokerTimeoutMills", "6000"),
        ("transactionCheckInterval", "60000"),
        ("maxMessageSize", "4194304"),
        ("mappedFileSizeCommitLog", "1073741824"),
        ("flushDiskType", "ASYNC_FLUSH"),
        ("autoCreateTopicEnable", "true"),
        ("messageDelayLevel", "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"),
        ("deleteWhen", "04"),
        ("dlqTopicPerm", "2"),
    ],
)
def test_broker_defaults_are_those_of_4_9_8(key: str, value: str) -> None:
    assert dict(BrokerConfig().items())[key] == value


def test_side_ports_leave_the_port_of_apaches_exporter_free() -> None:
    """Port 5557 is the default of Apache's rocketmq-exporter, which may run on the same machine."""
    side_ports = {BrokerConfig().http_port, NamesrvConfig().http_port}
    assert side_ports == {5559, 5558}
    assert (ports.BROKER_HTTP_PORT, ports.NAMESRV_HTTP_PORT) == (5559, 5558)


def test_properties_text_has_one_line_for_every_key() -> None:
    config = NamesrvConfig(listen_port=0, cluster_test=False)
    lines = config.to_properties().splitlines()
    assert len(lines) == len(fields(NamesrvConfig))
    assert "listenPort=0" in lines
    assert "clusterTest=false" in lines


def test_the_commit_log_may_lie_elsewhere() -> None:
    assert BrokerConfig(store_path_root_dir="/d").commit_log_dir == "/d/commitlog"
    assert BrokerConfig(store_path_commit_log="/fast/log").commit_log_dir == "/fast/log"


def test_settings_are_frozen() -> None:
    config = BrokerConfig()
    with pytest.raises(FrozenInstanceError):
        config.listen_port = 1  # type: ignore[misc]


def test_a_key_that_names_the_process_may_not_change_while_it_runs() -> None:
    updatable = BrokerConfig.updatable_keys()
    assert "flushIntervalCommitLog" in updatable
    assert not updatable & {"brokerName", "listenPort", "storePathRootDir", "aclEnable"}
    assert not NamesrvConfig.updatable_keys() & {"kvConfigPath", "configStorePath"}
