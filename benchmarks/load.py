"""The load generator, a process of its own: `python -m benchmarks.load SCENARIO HOST:PORT LIMIT`.

One thread, one epoll; every connection keeps a fixed number of requests in flight. It prints one
JSON object: messages, seconds, rate and a latency histogram in microseconds.
"""

import json
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.talkers import QUEUES, PullTalker, SendTalker, Talker

RECEIVE_BYTES = 256 * 1024
SILENCE_SECONDS_MAX = 20
PERCENTILES = (50, 90, 99, 99.9)


@dataclass(frozen=True, slots=True)
class Scenario:
    """How many connections say what, and how many questions each keeps open."""

    connections: int
    in_flight: int
    talker: Callable[[int], Talker]


SCENARIOS = {
    "send-64x1": Scenario(64, 1, SendTalker),
    "send-1x64": Scenario(1, 64, SendTalker),
    "batch-32": Scenario(QUEUES, 2, lambda number: SendTalker(number, batch=32)),
    "pull-32": Scenario(QUEUES, 1, PullTalker),
}


class Conversation:
    """One connection with its requests in flight."""

    def __init__(self, addr: tuple[str, int], talker: Talker) -> None:
        self.talker = talker
        self.asked: deque[int] = deque()
        self.interest = select.EPOLLIN
        self.socket = socket.create_connection(addr)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self._unsent = b""
        self._received = b""

    def ask(self, count: int) -> None:
        """Put `count` more requests into flight, as far as there are any."""
        requests = [request for _ in range(count) if (request := self.talker.ask())]
        now = time.perf_counter_ns()
        self.asked.extend(now for _ in requests)
        self._unsent += b"".join(requests)
        self.push()

    def push(self) -> bool:
        """Send what the socket takes; True when everything is sent."""
        if self._unsent:
            try:
                sent = self.socket.send(self._unsent)
            except BlockingIOError:
                return False
            self._unsent = self._unsent[sent:]
        return not self._unsent

    def answers(self) -> list[bytes]:
        """Read, and return the headers of the answers that are complete."""
        received = self.socket.recv(RECEIVE_BYTES)
        if not received:
            raise ConnectionError("the broker closed the connection")
        data = self._received + received if self._received else received
        headers = []
        start = 0
        while len(data) - start >= 8:
            end = start + 4 + int.from_bytes(data[start : start + 4], "big")
            if end > len(data):
                break
            size = int.from_bytes(data[start + 5 : start + 8], "big")
            headers.append(data[start + 8 : start + 8 + size])
            start = end
        self._received = data[start:]
        return headers


def run(
    scenario: Scenario, addr: tuple[str, int], message_limit: int, seconds: float
) -> dict[str, object]:
    """Talk until the limit of messages or the time is reached, and everything is answered."""
    with ExitStack() as open_things:
        poll = open_things.enter_context(select.epoll())
        conversations = {}
        for number in range(scenario.connections):
            each = Conversation(addr, scenario.talker(number))
            open_things.enter_context(each.socket)
            conversations[each.socket.fileno()] = each
            poll.register(each.socket, select.EPOLLIN)
        started = time.perf_counter_ns()
        for each in conversations.values():
            each.ask(scenario.in_flight)
        stop_at = started + int(seconds * 1e9)
        messages, latencies = _talk(poll, conversations, message_limit, stop_at)
        return report(messages, (time.perf_counter_ns() - started) / 1e9, latencies)


def _talk(
    poll: select.epoll, conversations: dict[int, Conversation], message_limit: int, stop_at: int
) -> tuple[int, list[int]]:
    messages = 0
    latencies: list[int] = []
    while any(each.asked for each in conversations.values()):
        events = poll.poll(SILENCE_SECONDS_MAX)
        if not events:
            raise TimeoutError(f"no answer in {SILENCE_SECONDS_MAX} s")
        for descriptor, event in events:
            each = conversations[descriptor]
            if event & ~select.EPOLLOUT:
                headers = each.answers()
                now = time.perf_counter_ns()
                for header in headers:
                    latencies.append(now - each.asked.popleft())
                    messages += each.talker.hear(header)
                if now < stop_at and messages < message_limit:
                    each.ask(len(headers))
            is_sent = each.push()
            wanted = select.EPOLLIN if is_sent else select.EPOLLIN | select.EPOLLOUT
            if wanted != each.interest:
                each.interest = wanted
                poll.modify(descriptor, wanted)
    return messages, latencies


def report(messages: int, seconds: float, latencies: list[int]) -> dict[str, object]:
    """Return the figures of one run; latencies are in nanoseconds."""
    latencies.sort()
    last = len(latencies) - 1
    return {
        "messages": messages,
        "seconds": round(seconds, 3),
        "rate": round(messages / seconds),
        "latency_us": {
            f"p{each:g}": latencies[round(last * each / 100)] // 1000 for each in PERCENTILES
        },
        "generator_cpu_seconds": round(time.process_time(), 3),
    }


def main() -> None:
    """Run the scenario that the command line names."""
    name, addr, message_limit, seconds = sys.argv[1:]
    host, _, port = addr.rpartition(":")
    figures = run(SCENARIOS[name], (host, int(port)), int(message_limit), float(seconds))
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
