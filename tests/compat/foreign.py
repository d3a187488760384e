"""A foreign client in a process of its own, driven by JSON lines.

Commands, on its standard input:

    {"do":"produce","namesrv":N,"group":G}                       -> ready
        optional "transactions":true                             -> checked, for a check-back
        optional "trace":true, to write trace records (Java)
    {"do":"send","topic":T,"messages":[M,…]}                     -> sent or error, per message
        "produce", "consume", "pull" and "poll" with optional "account":A and "secret":S sign all
        requests (not Rust)
    {"do":"send_batch","topic":T,"messages":[M,…]}               -> sent
    {"do":"consume","namesrv":N,"group":G,"topic":T,"expression":E}
                                                                 -> ready, then message…
        optional, each true: "fails", "orderly", "broadcasting", "sql", "replies", "trace" (Java),
        "assigned" (Java 5; the broker assigns the queues);
        with "replies" the consumer replies to messages that begin with "question"
    {"do":"pull","namesrv":N,"group":G,"topic":T}                -> message…, pulled (Java)
        reads all queues from the beginning with a pull consumer, and commits the offsets
    {"do":"poll","namesrv":N,"group":G,"topic":T,"count":C}      -> message…, polled (Java)
        reads C messages with a lite pull consumer, and commits the offsets
    {"do":"request","topic":T,"body":B}                          -> replied (Java)
    {"do":"query","topic":T,"key":K}                             -> message…, queried (Java)
    {"do":"view","topic":T,"id":I}                               -> message (Java)
    {"do":"mqadmin","arguments":[…]}                             -> printed (Java)
    {"do":"reset"}                                               -> reset (Java)
    {"do":"stop"}                                                -> stopped

M has body and, optionally, tag, keys, delay (level), oneway, async, shard, properties and
transactional. The keys of a transactional message are two states with "-" between them: the state
after sending and the state that the producer reports in a check-back, each commit, rollback or
unknown. The client prints events on its standard output. Every event has the member "event"; "sent"
has id, offset and status, "message" has the received message.
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

EVENT_SECONDS_MAX = 90.0
REFUSAL_SECONDS_MAX = 90.0
STOP_SECONDS_MAX = 60.0


class ForeignClient:
    """One running client; end it with `stop`, or with `kill` for SIGKILL."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self.log = log
        self.events: list[Event] = []
        self._changed = threading.Condition()
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
        """The messages that the consumer has received until now."""
        return self.of("message")

    def of(self, kind: str) -> list[Event]:
        """Return the events of one kind until now."""
        with self._changed:
            return [event for event in self.events if event["event"] == kind]

    def command(self, do: str, **arguments: Any) -> None:
        """Write a command; return without waiting for its event."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()

    def send(self, topic: str, messages: list[Event]) -> list[Event]:
        """Send messages; return one "sent" event per message, in order.

        A failed send fails the test.
        """
        before = len(self.of("sent"))
        self.command("send", topic=topic, messages=messages)
        return self.wait_for("sent", before + len(messages))[before:]

    def refusal(self, do: str, **arguments: Any) -> str:
        """Write a command that must fail; return the text of the error event, and remove it."""
        deadline = time.monotonic() + REFUSAL_SECONDS_MAX
        self.command(do, **arguments)
        with self._changed:
            while not (errors := [each for each in self.events if each["event"] == "error"]):
                left = deadline - time.monotonic()
                assert left > 0, f"no error in {REFUSAL_SECONDS_MAX} s\n{self.tail()}"
                assert not self._ended, f"the client ended\n{self.tail()}"
                self._changed.wait(left)
            self.events = [each for each in self.events if each["event"] != "error"]
            return str(errors[0]["text"])

    def wait_for(
        self, kind: str, count: int = 1, seconds: float = EVENT_SECONDS_MAX
    ) -> list[Event]:
        """Wait for `count` events of a kind; return all events of the kind."""
        self.wait_until(lambda: len(self.of(kind)) >= count, f"{count} of {kind}", seconds)
        return self.of(kind)

    def wait_until(
        self, condition: Callable[[], bool], what: str, seconds: float = EVENT_SECONDS_MAX
    ) -> None:
        """Wait for a condition over the events; fail after an error event or the client's end."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not condition():
                errors = [event for event in self.events if event["event"] == "error"]
                assert not errors, f"{errors[0]['text']} while waiting for {what}"
                assert not self._ended, f"the client ended while waiting for {what}\n{self.tail()}"
                left = deadline - time.monotonic()
                counts = {kind["event"] for kind in self.events}
                assert left > 0, f"no {what} in {seconds} s, only {counts}\n{self.tail()}"
                self._changed.wait(left)

    def stop(self) -> None:
        """Shut the client down and wait for its end.

        The C++ client sometimes aborts inside its own shutdown, after its last event. The broker
        does not cause the abort, so SIGABRT is accepted.
        """
        if self._killed:
            return
        if self._process.poll() is None:
            self.command("stop")
        try:
            code = self._process.wait(STOP_SECONDS_MAX)
        finally:
            self.kill()
        assert code in (0, -signal.SIGABRT), f"exit code {code}\n{self.tail()}"

    @property
    def is_running(self) -> bool:
        """Whether the process runs: False after `stop`, `kill` or its own end."""
        return self._process.poll() is None

    def reset(self) -> bool:
        """Shut producer and consumer down and clear the events; return False after a failure."""
        with self._changed:
            self.events = [event for event in self.events if event["event"] != "error"]
        self.command("reset")
        try:
            self.wait_for("reset", seconds=STOP_SECONDS_MAX)
        except AssertionError:
            self.kill()
            return False
        with self._changed:
            self.events.clear()
        return True

    def kill(self) -> None:
        """Send SIGKILL to the process, so that the client cannot unregister."""
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
                continue  # log line of the library
            with self._changed:
                self.events.append(json.loads(line))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
