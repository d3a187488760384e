"""Reports of a program to systemd, by the protocol of sd_notify(3).

A unit of Type=notify counts as started at READY=1: units after it, and `systemctl start`, wait.
Without NOTIFY_SOCKET, as outside of such units, a report does nothing.
"""

import logging
import os
import socket

log = logging.getLogger(__name__)

READY = "READY=1"
STOPPING = "STOPPING=1"
VARIABLE = "NOTIFY_SOCKET"


def report(state: str) -> None:
    """Send a state; a failure is a warning, since the program itself works."""
    address = os.environ.get(VARIABLE, "")
    if not address:
        return
    if address.startswith("@"):  # a name outside of the file system
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.connect(address)
            sender.sendall(state.encode())
    except OSError as error:
        log.warning("%s cannot be sent to %s: %s", state, VARIABLE, error)
