"""Attacks on the event loop by clients: heartbeats, subscriptions, filters and locks."""

from collections.abc import Iterator
from functools import partial

from core_broker.remoting.codes import RequestCode as Code
from tests.support.broker_requests import pull_header
from tests.support.hostile_bodies import GROUP, TOPIC, Attack, frame, to_json


def client_registrations() -> Iterator[Attack]:
    """Long lists in the requests by which clients register."""
    yield from _long_heartbeats()
    yield from _filters_in_heartbeats()
    yield from _filters_and_locks()


def _locks(count: int) -> list[bytes]:
    queues = [{"topic": TOPIC, "brokerName": "b", "queueId": n} for n in range(count)]
    body = to_json({"consumerGroup": GROUP, "clientId": "hostile", "mqSet": queues})
    return [frame(code, None, body) for code in (Code.LOCK_BATCH_MQ, Code.UNLOCK_BATCH_MQ)]


def _sql_check(text: str) -> list[bytes]:
    subscription = {"topic": TOPIC, "expressionType": "SQL92", "subString": text}
    body = to_json({"clientId": "h", "group": GROUP, "subscriptionData": subscription})
    return [frame(Code.CHECK_CLIENT_CONFIG, None, body)]


def _heartbeat(**sets: object) -> bytes:
    return frame(Code.HEART_BEAT, None, to_json({"clientID": "hostile", **sets}))


def _consumer(n: int, *subscriptions: object) -> dict[str, object]:
    return {"groupName": f"{GROUP}{n}", "subscriptionDataSet": subscriptions}


def _long_heartbeats() -> Iterator[Attack]:
    yield Attack(
        "34 1,000 groups",
        "broker",
        lambda: [
            _heartbeat(consumerDataSet=[_consumer(n, {"topic": TOPIC}) for n in range(1_000)])
        ],
    )
    yield Attack(
        "34 100,000 groups",
        "broker",
        lambda: [_heartbeat(producerDataSet=[{"groupName": f"P{n}"} for n in range(100_000)])],
    )
    yield Attack(
        "34 10,000 subscriptions",
        "broker",
        lambda: [
            _heartbeat(consumerDataSet=[_consumer(0, *({"topic": f"T{n}"} for n in range(10_000)))])
        ],
    )
    yield Attack(
        "34 10 groups of 9,000 subscriptions",
        "broker",
        lambda: [
            _heartbeat(
                consumerDataSet=[
                    _consumer(g, *({"topic": f"T{n}"} for n in range(9_000))) for g in range(10)
                ]
            )
        ],
    )


def _filters_in_heartbeats() -> Iterator[Attack]:
    yield Attack(
        "34 tags",
        "broker",
        lambda: [
            _heartbeat(
                consumerDataSet=[
                    _consumer(
                        0,
                        {
                            "topic": TOPIC,
                            "subString": "||".join(f"t{n}" for n in range(200_000)),
                            "tagsSet": [f"t{n}" for n in range(200_000)],
                        },
                    )
                ]
            )
        ],
    )
    yield Attack(
        "34 SQL filters",
        "broker",
        lambda: [
            _heartbeat(
                consumerDataSet=[
                    _consumer(
                        0,
                        *(
                            {
                                "topic": f"T{n}",
                                "expressionType": "SQL92",
                                "subString": "a > 1 AND " * 500 + "b < 2",
                            }
                            for n in range(500)
                        ),
                    )
                ]
            )
        ],
    )


def _filters_and_locks() -> Iterator[Attack]:
    for count in (9_000, 100_000):
        yield Attack(f"41 {count} queues", "broker", partial(_locks, count))
    for name, text in (
        ("long", "(a > 1) AND " * 300_000 + "b"),
        ("nested", "(" * 1_000_000),
    ):
        yield Attack(f"46 {name} SQL filter", "broker", partial(_sql_check, text))
    yield Attack(
        "11 long tag expression",
        "broker",
        lambda: [
            frame(11, pull_header(TOPIC, subscription="||".join(f"t{n}" for n in range(900_000))))
        ],
    )
