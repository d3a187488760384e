"""The switch of `manage.py demo --replicas N`, which kills replicas; nowhere else is there one.

GANTRY_DEMO_CONTROL has port, token and name server of the switch (`console/launcher/
demo_control.py`).
"""

import socket
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.utils.translation import gettext as _

from console.gateway import Cluster, ClusterUnreachable, NotAllowedNow

LOOPBACK: Final = "127.0.0.1"
TIMEOUT_S: Final = 5.0
ANSWER_BYTES_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class Switch:
    """The switch of the demo that started this console."""

    port: int
    token: str

    def kill(self, addr: str) -> str:
        """Kill the replica of an address; return the name of the program.

        Raises NotAllowedNow when the demo refuses, and ClusterUnreachable without an answer.
        """
        port = addr.rpartition(":")[2]
        try:
            with closing(socket.create_connection((LOOPBACK, self.port), TIMEOUT_S)) as connected:
                connected.sendall(f"{self.token} kill {port}\n".encode())
                with connected.makefile("rb") as answer:
                    line = answer.readline(ANSWER_BYTES_MAX).decode("utf-8", "replace").strip()
        except OSError as failure:
            raise ClusterUnreachable(_("The demo does not answer: %s") % failure) from failure
        verb, _blank, rest = line.partition(" ")
        if verb != "killed":
            raise NotAllowedNow(_("The demo refused: %s") % rest)
        return rest


def switch_of(cluster: Cluster) -> Switch | None:
    """Return the switch of the demo's own cluster; None everywhere else."""
    port, _blank, rest = settings.DEMO_CONTROL.partition(" ")
    token, _blank, namesrv_addr = rest.partition(" ")
    if not port.isdecimal() or not token or cluster.namesrv_addr != namesrv_addr:
        return None
    return Switch(int(port), token)
