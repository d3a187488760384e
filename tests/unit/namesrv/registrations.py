"""Headers and bodies of the registration of a broker."""

from msgspec import json


def topic(name: str, **config: object) -> dict[str, object]:
    base = {"order": False, "perm": 6, "readQueueNums": 2, "topicFilterType": "SINGLE_TAG"}
    return {**base, "topicName": name, "topicSysFlag": 0, "writeQueueNums": 2, **config}


def registration(*topics: dict[str, object], counter: int = 1) -> bytes:
    wrapper = {
        "dataVersion": {"counter": counter, "timestamp": 1795251271076},
        "topicConfigTable": {each["topicName"]: each for each in topics},
    }
    return json.encode({"filterServerList": [], "topicConfigSerializeWrapper": wrapper})


def broker(name: str = "broker-a", addr: str = "127.0.0.1:20911", **fields: str) -> dict[str, str]:
    return {
        "brokerName": name,
        "brokerAddr": addr,
        "clusterName": "DefaultCluster",
        "brokerId": "0",
        "haServerAddr": "192.0.2.2:20912",
        "compressed": "false",
        "bodyCrc32": "0",
        **fields,
    }
