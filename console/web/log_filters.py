"""Filters of log lines of libraries; imported by the logging settings, before Django's apps."""

import logging

#: uvicorn 0.54 logs the line for each WebSocket that is answered with an HTTP status, after a
#: complete response.
NO_HANDSHAKE = "ASGI callable returned without completing handshake."


class RefusedHandshakes(logging.Filter):
    """Drops NO_HANDSHAKE: `admission.py` logs and counts refused WebSockets itself."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.msg != NO_HANDSHAKE
