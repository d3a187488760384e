"""Driver of the C++ core client (PyPI `rocketmq` 0.4.4). Runs in a separate environment.

Reads JSON commands and prints JSON events, one per line; `foreign.py` documents both.
"""

import json
import os
import sys
import threading
from typing import Any

from rocketmq.client import (  # type: ignore[import-not-found]
    Message,
    MessageModel,
    Producer,
    PushConsumer,
    RecvMessage,
)

_printing = threading.Lock()


def say(event: str, **values: Any) -> None:
    """Print one event; callbacks come from the library's threads."""
    with _printing:
        sys.stdout.write(json.dumps({"event": event, **values}) + "\n")
        sys.stdout.flush()


def text(value: bytes | str | None) -> str:
    """Return a value of the library as text."""
    return value.decode() if isinstance(value, bytes) else value or ""


class Driver:
    """The producer or consumer of this process."""

    def __init__(self) -> None:
        self.producer: Any = None
        self.consumer: Any = None
        self.fails = False

    def produce(self, namesrv: str, group: str, account: str = "", secret: str = "") -> None:
        self.producer = Producer(group)
        if account:
            self.producer.set_session_credentials(account, secret, "")
        self.producer.set_namesrv_addr(namesrv)
        self.producer.start()
        say("ready")

    def send(self, topic: str, messages: list[dict[str, Any]]) -> None:
        for each in messages:
            try:
                self._send_one(self._message(topic, each), each)
            except Exception as error:  # noqa: BLE001 - the test decides what a failure means
                say("error", text=repr(error))

    def send_batch(self, topic: str, messages: list[dict[str, Any]]) -> None:
        result = self.producer.send_batch([self._message(topic, each) for each in messages])
        say("sent", id=result.msg_id, offset=result.offset, status=result.status.name)

    def consume(
        self,
        namesrv: str,
        group: str,
        topic: str,
        expression: str,
        fails: bool = False,
        orderly: bool = False,
        broadcasting: bool = False,
        account: str = "",
        secret: str = "",
    ) -> None:
        self.fails = fails
        model = MessageModel.BROADCASTING if broadcasting else MessageModel.CLUSTERING
        self.consumer = PushConsumer(group, orderly, model)
        if account:
            self.consumer.set_session_credentials(account, secret, "")
        self.consumer.set_namesrv_addr(namesrv)
        self.consumer.subscribe(topic, self._received, expression)
        self.consumer.start()
        say("ready")

    def stop(self) -> None:
        for client in (self.producer, self.consumer):
            if client is not None:
                client.shutdown()
        say("stopped")
        os._exit(0)  # the library's destructors would shut down a second time

    def _message(self, topic: str, each: dict[str, Any]) -> Any:
        message = Message(topic)
        message.set_body(each.get("body", ""))
        if each.get("tag"):
            message.set_tags(each["tag"])
        if each.get("keys"):
            message.set_keys(each["keys"])
        if each.get("delay"):
            message.set_delay_time_level(each["delay"])
        return message

    def _send_one(self, message: Any, each: dict[str, Any]) -> None:
        if each.get("oneway"):
            self.producer.send_oneway(message)
            say("sent", id="", offset=-1, status="ONEWAY")
            return
        if each.get("async"):
            self.producer.send_async(message, self._sent, self._refused)
            return
        if "shard" in each:
            result = self.producer.send_orderly(message, each["shard"])
        else:
            result = self.producer.send_sync(message)
        self._sent(result)

    def _sent(self, result: Any) -> None:
        say("sent", id=result.msg_id, offset=result.offset, status=result.status.name)

    def _refused(self, error: Exception) -> None:
        say("error", text=repr(error))

    def _received(self, message: RecvMessage) -> None:
        say(
            "message",
            topic=message.topic,
            id=message.id,
            keys=text(message.keys),
            tag=text(message.tags),
            body=text(message.body),
            queue=message.queue_id,
            offset=message.queue_offset,
            reconsume=message.reconsume_times,
        )
        if self.fails:
            raise RuntimeError("the consume command sets fails")


def main() -> None:
    """Run commands until `stop` or the end of the input."""
    driver = Driver()
    for line in sys.stdin:
        command = json.loads(line)
        getattr(driver, command.pop("do"))(**command)


if __name__ == "__main__":
    main()
