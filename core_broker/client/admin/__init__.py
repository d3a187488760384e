"""The admin client: every question that console, tools, tests and Spark ask a cluster.

One file per noun: topics, groups, offsets, messages, brokers, name server, access. It speaks
nothing but RocketMQ's own protocol, so it works on Gantry and on Apache RocketMQ alike; `inventory`
alone asks what only Gantry answers.
"""

from core_broker.client.admin.access import AccessAccount, AccessAdmin, AccessVersion
from core_broker.client.admin.brokers import BrokerAdmin
from core_broker.client.admin.groups import GroupAdmin
from core_broker.client.admin.inventory import InventoryAdmin
from core_broker.client.admin.messages import MessageAdmin
from core_broker.client.admin.name_server import NameServerAdmin
from core_broker.client.admin.offsets import OffsetAdmin
from core_broker.client.admin.topics import TopicAdmin

__all__ = ["AccessAccount", "AccessVersion", "AdminClient"]


class AdminClient(
    TopicAdmin,
    GroupAdmin,
    OffsetAdmin,
    MessageAdmin,
    BrokerAdmin,
    InventoryAdmin,
    NameServerAdmin,
    AccessAdmin,
):
    """Ask a cluster and change it: ``async with AdminClient("127.0.0.1:9876") as admin``.

    Methods that take ``addr`` ask that one broker, found in ``cluster_info`` or ``topic_route``;
    the others ask the name servers. It belongs to one event loop.
    """
