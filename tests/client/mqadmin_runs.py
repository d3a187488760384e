"""Runs of mqadmin's commands in the test process, and consumers beside the commands."""

import asyncio
import json
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from click.testing import CliRunner, Result

from core_broker.client import (
    AdminClient,
    ConsumerSettings,
    ConsumeStatus,
    MessageExt,
    PushConsumer,
)
from core_broker.message.topics import retry_topic
from core_broker.mqadmin.cli import cli
from tests.support.eventually import eventually
from tests.support.registered import route_of

START_TIMEOUT_S = 90.0


class Mqadmin:
    """`mqadmin(*arguments)` runs a command and checks its exit code.

    `keys` are the access key and the secret key that sign requests.
    """

    def __init__(
        self, namesrv_addr: str, keys: tuple[str | None, str | None] = (None, None)
    ) -> None:
        self._env = {
            "NAMESRV_ADDR": namesrv_addr,
            "ROCKETMQ_HOME": None,
            "MQADMIN_TOOLS_FILE": None,
            "MQADMIN_ACCESS_KEY": keys[0],
            "MQADMIN_SECRET_KEY": keys[1],
        }

    def __call__(self, *arguments: str, code: int = 0) -> Result:
        result = CliRunner().invoke(cli, arguments, prog_name="mqadmin", env=self._env)
        raised = result.exception
        assert raised is None or isinstance(raised, SystemExit), repr(raised)
        output_text = f"{arguments}\n{result.stdout}\n{result.stderr}"
        assert result.exit_code == code, output_text
        assert "Traceback" not in result.stderr, output_text
        assert bool(result.stderr) == (code != 0), output_text
        return result

    def lines(self, *arguments: str) -> list[str]:
        return self(*arguments).stdout.splitlines()

    def documents(self, *arguments: str) -> list[Any]:
        """Run the command with --output json and return the documents, one per line."""
        stdout = self(*arguments, "--output", "json").stdout
        return [json.loads(line) for line in stdout.splitlines()]

    def document(self, *arguments: str) -> Any:
        (document,) = self.documents(*arguments)
        return document


class OnlineConsumer:
    """A push consumer on a separate event loop, while tests run commands.

    The name server knows the retry topic, by which commands find the brokers of the group.
    """

    def __init__(self, namesrv_addr: str, group: str, topic: str) -> None:
        self.group = group
        self.client_id = ""
        self.bodies: list[bytes] = []
        self._addr = namesrv_addr
        self._topic = topic
        self._started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)
        self._failure: BaseException | None = None
        self._stop: Callable[[], object] | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(START_TIMEOUT_S)
        assert self._failure is None, self._failure
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._consume())

    async def _consume(self) -> None:
        stopping = asyncio.Event()
        self._stop = stopping.set
        settings = ConsumerSettings(commit_interval_s=0.1)
        consumer = PushConsumer(self.group, self._addr, settings=settings)
        consumer.subscribe(self._topic)

        @consumer.listener
        async def take(messages: list[MessageExt]) -> ConsumeStatus:
            self.bodies += [message.body for message in messages]
            return ConsumeStatus.CONSUME_SUCCESS

        try:
            await consumer.start()
            async with AdminClient(self._addr) as admin:
                await eventually(lambda: route_of(admin, retry_topic(self.group)))
        except BaseException as error:
            self._failure = error
            raise
        finally:
            self.client_id = consumer.client_id
            self._started.set()
        await stopping.wait()
        await consumer.stop()


def wait_until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    """Poll a condition until True; fail after `timeout_s`."""
    deadline = threading.Event()
    timer = threading.Timer(timeout_s, deadline.set)
    timer.start()
    try:
        while not condition():
            assert not deadline.wait(0.02), f"the condition was false for {timeout_s} s"
    finally:
        timer.cancel()
