"""The live feed of alarms.

/ws/clusters/<cluster>/alarms sends JSON after every change of what the pages of alarms show:

    {"changed": "alarms"}     alarms began, fired, resolved, were acknowledged, or have new values
    {"changed": "notices"}    the result of a notice
    {"changed": "silences"}   a silence began or was ended; the end of its time is no change
    {"changed": "rules"}      a rule was saved, switched or deleted

A message has no names or values: a page requests its parts again, with the rights of its user. An
evaluation sends one message, however many alarms changed.
"""

from functools import partial
from typing import Literal

from django.db import transaction

from console.web.live import announced

Changed = Literal["alarms", "notices", "silences", "rules"]


class AlarmsFeed(announced.AnnouncedFeed):
    """Changes of the cluster's alarms."""

    group = "alarms"


def announce(cluster: str, changed: Changed) -> None:
    """Notify open pages of a cluster, or of all clusters, after the running transaction."""
    message = {"changed": changed}
    transaction.on_commit(partial(announced.announce, AlarmsFeed.group, cluster, message))
