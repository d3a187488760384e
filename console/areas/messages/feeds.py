"""Live feeds of the area `message`.

/ws/clusters/<cluster>/messages/tail?topic=…&queue=…&tags=…&sql=…&body=…&body_test=…&rate=…
speaks JSON:

    {"type": "rows", "at_ms": …, "rows": [row, …], "seen": …, "matched": …, "dropped": …,
     "skipped": …, "failures": […]}                    as messages come, and once a second
    {"type": "lost", "at_ms": …, "reason": "…", …}     instead, while the cluster cannot answer
    {"type": "refused", "reason": "…"}                 once, before it closes with 4400 or 4429

The counts are those since the connection began. It understands {"paused": true} and false: while
it is paused rows are counted and not sent. Nothing older than the connection is shown.
"""

import asyncio
import json
from contextlib import suppress
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _

from console.areas.messages.forms import TailForm
from console.areas.messages.tails import Listener, Tail, TooManyTails, join_tail, leave_tail
from console.web.live.feed import HEARD_BYTES_MAX, ClusterFeed

WRONG_QUESTION = 4400
TOO_MANY = 4429
#: What comes is sent together this often; a second without news is told as well.
SEND_EVERY_S = 0.1
STILL_S = 1.0
QUERY_BYTES_MAX = 16 * 1024


class TailFeed(ClusterFeed):
    """New messages of a topic as they come."""

    listener: Listener | None = None
    tail: Tail | None = None
    sending: asyncio.Task[None] | None = None

    async def joined(self) -> None:
        query = self.scope.get("query_string", b"")[:QUERY_BYTES_MAX]
        form = TailForm(QueryDict(query))
        if not form.is_valid():
            reasons = [f"{name}: {text}" for name, texts in form.errors.items() for text in texts]
            await self.refuse(WRONG_QUESTION, " ".join(reasons))
            return
        asked = form.cleaned_data
        listener = Listener(asked["wanted"], asked["queue"], asked["rate"])
        try:
            self.tail = join_tail(self.cluster, asked["topic"], listener)
        except TooManyTails:
            await self.refuse(TOO_MANY, _("Too many live tails are open; close some of them."))
            return
        self.listener = listener
        self.sending = asyncio.create_task(self.send_news(listener))

    async def refuse(self, code: int, reason: str) -> None:
        await self.send_json({"type": "refused", "reason": reason})
        await self.close(code=code)

    async def send_news(self, listener: Listener) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(listener.news.wait(), STILL_S)
            await self.send_json(listener.take())
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
            said = json.loads(text_data or "null")
            if self.listener is not None and isinstance(said, dict):
                self.listener.paused = said.get("paused") is True
