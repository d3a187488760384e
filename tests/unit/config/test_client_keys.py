"""Keys of RocketMQ's client: the document has the path in the library and the default of each."""

import importlib
import re
from operator import attrgetter
from pathlib import Path
from types import ModuleType

import pytest

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "settings.md"
_SECTION = (
    DOCUMENT.read_text(encoding="utf-8").partition("## Client library")[2].partition("\n## ")[0]
)
ROWS = re.findall(r"^\| `(\w+)`.* \| `([\w.]+)` \| `([-\w]+)` \|$", _SECTION, re.M)
#: Defaults of DefaultMQProducer, DefaultMQPushConsumer, DefaultLitePullConsumer and ClientConfig.
DEFAULTS = {
    "sendMsgTimeout": "3000",
    "retryTimesWhenSendFailed": "2",
    "retryAnotherBrokerWhenNotStoreOK": "false",
    "compressMsgBodyOverHowmuch": "4096",
    "maxMessageSize": "4194304",
    "defaultTopicQueueNums": "4",
    "vipChannelEnabled": "false",
    "pollNameServerInterval": "30000",
    "heartbeatBrokerInterval": "30000",
    "persistConsumerOffsetInterval": "5000",
    "mqClientApiTimeout": "3000",
    "consumeThreadMin": "20",
    "consumeConcurrentlyMaxSpan": "2000",
    "pullThresholdForQueue": "1000",
    "pullThresholdSizeForQueue": "104857600",
    "consumeMessageBatchMaxSize": "1",
    "maxReconsumeTimes": "-1",
    "suspendCurrentQueueTimeMillis": "1000",
    "consumeTimeout": "900000",
    "brokerSuspendMaxTimeMillis": "15000",
    "pullTimeDelayMillsWhenException": "1000",
    "rebalanceInterval": "20000",
    "pollTimeoutMillis": "5000",
}


def value_of(path: str) -> object:
    """Return the default of `module.Class.field` or `module.CONSTANT`."""
    *modules, last = path.split(".")
    owner: object = None
    while modules and owner is None:
        try:
            owner = importlib.import_module(".".join(["core_broker.client", *modules]))
        except ModuleNotFoundError:
            last = f"{modules.pop()}.{last}"
    assert isinstance(owner, ModuleType), path
    if "." in last:
        kind, field = last.split(".")
        return getattr(getattr(owner, kind)(), field)
    return attrgetter(last)(owner)


@pytest.mark.parametrize(("key", "path", "documented"), ROWS)
def test_the_document_has_the_default(key: str, path: str, documented: str) -> None:
    value = value_of(path)
    if isinstance(value, bool):
        assert documented == str(value).lower(), key
        return
    assert isinstance(value, int | float)
    in_java = value * 1000 if path.lower().endswith("_s") else value
    assert documented == str(int(in_java)), key


def test_the_defaults_are_those_of_rocketmq() -> None:
    documented: dict[str, set[str]] = {}
    for key, _, default in ROWS:
        documented.setdefault(key, set()).add(default)
    wrong = {key for key, default in DEFAULTS.items() if default not in documented.get(key, ())}
    assert not wrong
    assert documented["pullBatchSize"] == {"32", "10"}, "push, and lite pull"
