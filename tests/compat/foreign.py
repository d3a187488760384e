"""A foreign client in a process of its own, driven by JSON lines.

Commands, on its standard input:

    {"do":"produce","namesrv":N,"group":G}                       -> ready
        also "transactions":true                                 -> checked, for a check-back
        and "trace":true, to write trace records (Java)
    {"do":"send","topic":T,"messages":[M,…]}                     -> sent or error, per message
    {"do":"send_batch","topic":T,"messages":[M,…]}               -> sent
    {"do":"consume","namesrv":N,"group":G,"topic":T,"expression":E}
                                                                 -> ready, then message…
        also, where wanted: "fails", "orderly", "broadcasting", "sql", "replies", and "trace"
        (Java), each true;
        with "replies" it replies to messages that begin with "question"
    {"do":"request","topic":T,"body":B}                          -> replied (Java)
    {"do":"query","topic":T,"key":K}                             -> message…, queried (Java)
    {"do":"view","topic":T,"id":I}                               -> message (Java)
    {"do":"mqadmin","arguments":[…]}                             -> printed (Java)
    {"do":"reset"}                                               -> reset (Java)
    {"do":"stop"}                                                -> stopped

M has body and, if wanted, tag, keys, delay (level), oneway, async, shard, properties, and
transactional. The keys of a transactional message are its fate: what the producer says after
sending, "-", what it says when it is asked; commit, rollback or unknown. Events, on its standard
output, have the member "event"; "sent" tells id, offset and status, "message" what was received.
"""

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Event = dict[str, Any]

EVENT_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 20.0


class ForeignClient:
    """One running client; use `stop` in the end, or `kill` to make it die."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self.log = log
        self.events: list[Event] = []
        self._news = threading.Condition()
        self._ended = False
        self._killed = False
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
                cwd=log.parent,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def messages(self) -> list[Event]:
        """What the consumer has received so far."""
        return self.of("message")

    def of(self, kind: str) -> list[Event]:
        """Return the events of one kind so far."""
        with self._news:
            return [event for event in self.events if event["event"] == kind]

    def tell(self, do: str, **arguments: Any) -> None:
        """Give a command without waiting."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()

    def send(self, topic: str, messages: list[Event]) -> list[Event]:
        """Send and return one "sent" per message, in order; any failure fails the test."""
        before = len(self.of("sent"))
        self.tell("send", topic=topic, messages=messages)
        return self.wait_for("sent", before + len(messages))[before:]

    def wait_for(
        self, kind: str, count: int = 1, seconds: float = EVENT_SECONDS_MAX
    ) -> list[Event]:
        """Wait until there are `count` events of a kind, and return all of that kind."""
        self.wait_until(lambda: len(self.of(kind)) >= count, f"{count} of {kind}", seconds)
        return self.of(kind)

    def wait_until(
        self, condition: Callable[[], bool], what: str, seconds: float = EVENT_SECONDS_MAX
    ) -> None:
        """Wait for a condition over the events; an error event or the client's end fails it."""
        deadline = time.monotonic() + seconds
        with self._news:
            while not condition():
                errors = [event for event in self.events if event["event"] == "error"]
                assert not errors, f"{errors[0]['text']} while waiting for {what}"
                assert not self._ended, f"the client ended while waiting for {what}\n{self.tail()}"
                left = deadline - time.monotonic()
                counts = {kind["event"] for kind in self.events}
                assert left > 0, f"no {what} in {seconds} s, only {counts}\n{self.tail()}"
                self._news.wait(left)

    def stop(self) -> None:
        """Shut the client down and wait for its end.

        One of several runs of the C++ client aborts inside its own shutdown, after all that it had
        to say; that is no fault of the broker.
        """
        if self._killed:
            return
        if self._process.poll() is None:
            self.tell("stop")
        try:
            code = self._process.wait(STOP_SECONDS_MAX)
        finally:
            self.kill()
        assert code in (0, -signal.SIGABRT), f"exit code {code}\n{self.tail()}"

    @property
    def is_running(self) -> bool:
        """False after `stop` and `kill`, or when it ended by itself."""
        return self._process.poll() is None

    def reset(self) -> bool:
        """Shut its producer and consumer down and forget all events; False when that failed."""
        with self._news:
            self.events = [event for event in self.events if event["event"] != "error"]
        self.tell("reset")
        try:
            self.wait_for("reset", seconds=STOP_SECONDS_MAX)
        except AssertionError:
            self.kill()
            return False
        with self._news:
            self.events.clear()
        return True

    def kill(self) -> None:
        """End the process without a goodbye, if it is still there."""
        self._killed = True
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue

    def tail(self) -> str:
        """Return the last lines that the client wrote to its error output."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.startswith("{"):
                continue  # chatter of the library
            with self._news:
                self.events.append(json.loads(line))
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()
