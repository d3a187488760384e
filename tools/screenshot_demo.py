"""The demo of the pictures of `make screenshots`: the shop with three replicas, and objects beside
the shop: a receiver of alarms with a rule, delayed and half messages, a role, a body schema,
jobs."""

import asyncio
import base64
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Page

ROOT: Final = Path(__file__).resolve().parents[1]
PASSWORD: Final = "screenshots need no secret"  # noqa: S105 - of a Gantry that lives for minutes
CLUSTER: Final = "clusters/local"
#: Maximum time until the demo is ready, s: 30 on an idle machine, minutes beside test runs.
READY_SECONDS_MAX: Final = 600
#: Number of last lines of a demo that did not become ready.
LINES_SHOWN_MAX: Final = 20
#: Seconds of traffic before the first job: enough for dead letters, an alarm, lines in the charts.
SHOP_SECONDS: Final = 120
JOB_SECONDS_MAX: Final = 300
#: Delay levels: retries after some seconds, and two long levels for messages that wait.
DELAYS: Final = "1s 2s 3s " + "5s " * 13 + "30m 2h"
INVOICE: Final = {
    "type": "record",
    "name": "Invoice",
    "namespace": "shop",
    "fields": [{"name": "order", "type": "string"}, {"name": "amount", "type": "double"}],
}
#: Calls the REST API as the user who is signed in.
CALL: Final = """async ([method, path, content]) => {
  const token = JSON.parse(document.body.getAttribute("hx-headers:inherited"));
  const answer = await fetch(`/api/v1/${path}`, {
    method,
    headers: { ...token, "Content-Type": "application/json" },
    body: content === null ? undefined : JSON.stringify(content),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text ? JSON.parse(text) : null;
}"""


@contextmanager
def demo() -> Iterator[str]:
    """Run the demo on free ports and yield the address of the console."""
    with tempfile.TemporaryDirectory() as home:
        ports = [f"--{name}-port=0" for name in ("namesrv", "broker", "console")]
        process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", "--replicas", "3", "--home", home, *ports],
            cwd=ROOT,
            env={
                **os.environ,
                "GANTRY_ADMIN_PASSWORD": PASSWORD,
                "ROCKETMQ_MESSAGE_DELAY_LEVEL": DELAYS,
                "CONSOLE_INGEST_MINUTES": "0",
                "CONSOLE_ALARM_NETWORKS": "127.0.0.0/8",
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield _ready(process)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()


def _ready(process: "subprocess.Popen[str]") -> str:
    """Return the address of the console. The demo prints a line at least every 15 s: which
    programs are ready, and for which it waits."""
    assert process.stdout is not None
    lines: deque[str] = deque(maxlen=LINES_SHOWN_MAX)
    why = "ended before it was ready"
    until = time.monotonic() + READY_SECONDS_MAX
    for line in process.stdout:
        lines.append(line)
        if found := re.search(r"Gantry is ready: (http://\S+)", line):
            # The thread drains the later output: a full pipe would block the demo.
            threading.Thread(target=process.stdout.read, daemon=True).start()
            return found[1].rstrip("/")
        if time.monotonic() > until:
            why = f"was not ready after {READY_SECONDS_MAX} s"
            break
    raise SystemExit(f"The demo {why}. Its last lines:\n{''.join(lines)}")


@contextmanager
def webhook() -> Iterator[str]:
    """Accept notices of alarms; yield the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Accepting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/notices"
    finally:
        server.shutdown()


class _Accepting(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_about: Any) -> None:
        """Print no line per notice."""


async def fill(page: Page, webhook_url: str) -> None:
    """Create the objects; wait for traffic of SHOP_SECONDS; run the jobs. The page stays open, so
    that the live chart of the overview has the samples of this time."""
    begun = time.monotonic()
    await _alarms(page, webhook_url)
    for minutes, level in ((30, 17), (120, 18)):
        late = {"type": "delay", "delay_level": level, "body": f"after {minutes} min"}
        await _send(page, "orders", tags="reminder", **late)
    for number in (1, 2):
        half = {"type": "transaction", "outcome": "unknown", "producer_group": "checkout"}
        await _send(page, "payments", tags="open", body=f'{{"cart": {number}}}', **half)
    await call(page, "POST", "roles", TEAM)
    avro = base64.b64encode(json.dumps(INVOICE).encode()).decode()
    schema = {"format": "avro", "content_base64": avro}
    await call(page, "PUT", f"{CLUSTER}/body-schemas/invoices", schema)
    rule = {"topic": "invoices-*", "schema": "invoices"}
    await call(page, "POST", f"{CLUSTER}/body-rules", rule)
    await asyncio.sleep(max(0.0, begun + SHOP_SECONDS - time.monotonic()))
    for kind in ("ingest", "debug-bundle", "ingest"):
        await run_job(page, kind)


TEAM: Final = {
    "name": "payments-team",
    "description": "Reads payments, and resends the dead letters of accounting.",
    "permissions": [
        "topics:read:payments*",
        "messages:read:payments*",
        "groups:write:accounting",
        "deadletters:write:accounting",
    ],
}


async def _alarms(page: Page, webhook_url: str) -> None:
    """A receiver, a rule that fires within a minute, and a silence."""
    on_call = {"name": "On-call webhook", "kind": "webhook", "url": webhook_url, "all_rules": True}
    await call(page, "POST", f"{CLUSTER}/alarm-receivers", on_call)
    rule = {
        "name": "New dead letters",
        "source": "finding",
        "finding_rule": "dead-letters-growing",
        "severity": "warning",
        "for_s": 0,
        "note": "Runbook: resend after the card is found.",
    }
    await call(page, "POST", f"{CLUSTER}/alarm-rules", rule)
    silence = {"kind": "group", "pattern": "test-*", "duration_s": 3_600, "reason": "Load test"}
    await call(page, "POST", f"{CLUSTER}/alarm-silences", silence)


async def _send(page: Page, topic: str, **fields: Any) -> None:
    await call(page, "POST", f"{CLUSTER}/messages", {"topic": topic, **fields})


async def run_job(page: Page, kind: str) -> None:
    """Run a job to its end: the analytics page and the page of jobs need data."""
    job = await call(page, "POST", f"{CLUSTER}/jobs", {"kind": kind})
    async with asyncio.timeout(JOB_SECONDS_MAX):
        while job["state"] not in ("succeeded", "failed", "cancelled"):
            await asyncio.sleep(1)
            job = await call(page, "GET", f"{CLUSTER}/jobs/{job['id']}")
    if job["state"] != "succeeded":
        raise SystemExit(f"The job {kind} {job['state']}: {job['error']}")


async def call(page: Page, method: str, path: str, content: Any = None) -> Any:
    """Call the REST API; `path` is below /api/v1/."""
    return await page.evaluate(CALL, [method, path, content])
