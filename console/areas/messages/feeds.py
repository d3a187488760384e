"""Live feeds of the area `message`.

/ws/clusters/<cluster>/messages/tail?topic=…&queue=…&tags=…&sql=…&body=…&body_test=…&rate=…
speaks JSON:

    {"type": "rows", "at_ms": …, "rows": [row, …], "seen": …, "matched": …, "dropped": …,
     "skipped": …, "failures": […]}                    with new messages, and once a second
    {"type": "lost", "at_ms": …, "reason": "…", …}     while the cluster is unreachable
    {"type": "refused", "reason": "…"}                 once, before close codes 4400 and 4429

Counts start with the connection. A client sends {"paused": true} or {"paused": false}; during a
pause, rows are counted and not sent. Messages stored before the connection are not sent.
"""

import asyncio
import json
from contextlib import suppress
from typing import Any

from channels.db import database_sync_to_async
from django.utils.translation import gettext as _

from console.areas.messages.forms import TailForm
from console.areas.messages.tails import Listener, Tail, TooManyTails, join_tail, leave_tail
from console.frame.masking import mask_of
from console.web.live.feed import HEARD_BYTES_MAX, ClusterFeed

INVALID_QUERY = 4400
TOO_MANY = 4429
#: Interval between sends, seconds: rows of one interval share a frame. Without new rows, a frame
#: with the counts is sent every HEARTBEAT_S.
SEND_EVERY_S = 0.1
HEARTBEAT_S = 1.0


class TailFeed(ClusterFeed):
    """New messages of a topic, sent as soon as a tail has polled the topic."""

    access_query = "topic"
    listener: Listener | None = None
    tail: Tail | None = None
    sending: asyncio.Task[None] | None = None

    async def joined(self) -> None:
        form = TailForm(self.query)
        if not form.is_valid():
            reasons = [f"{name}: {text}" for name, texts in form.errors.items() for text in texts]
            await self.refuse(INVALID_QUERY, " ".join(reasons))
            return
        params = form.cleaned_data
        mask = await database_sync_to_async(mask_of)(self.scope["user"], self.cluster.name)
        listener = Listener(params["filter"], params["queue"], params["rate"], mask)
        try:
            self.tail = join_tail(self.cluster, params["topic"], listener)
        except TooManyTails:
            await self.refuse(TOO_MANY, _("Too many open live tails; close a live tail first."))
            return
        self.listener = listener
        self.sending = asyncio.create_task(self.send_rows(listener))

    async def refuse(self, code: int, reason: str) -> None:
        await self.send_json({"type": "refused", "reason": reason})
        await self.close(code=code)

    async def send_rows(self, listener: Listener) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(listener.changed.wait(), HEARTBEAT_S)
            await self.send_json(listener.take())
            await listener.renew_mask(self.cluster)
            await asyncio.sleep(SEND_EVERY_S)

    async def disconnect(self, code: int) -> None:
        if self.tail is not None and self.listener is not None:
            leave_tail(self.tail, self.listener)
        if self.sending is not None:
            self.sending.cancel()
            await asyncio.gather(self.sending, return_exceptions=True)

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None, **more: Any
    ) -> None:
        if len(text_data or bytes_data or "") > HEARD_BYTES_MAX:
            await super().receive(text_data, bytes_data, **more)
            return
        with suppress(ValueError, RecursionError):
            command = json.loads(text_data or "null")
            if self.listener is not None and isinstance(command, dict):
                self.listener.paused = command.get("paused") is True
