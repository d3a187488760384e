"""The admin client: the cluster requests of console, tools, tests and Spark.

One file per noun: topics, groups, offsets, messages, brokers, controllers, name server, access,
users. The admin client uses RocketMQ's protocol only, so it works on Gantry and on Apache RocketMQ;
the exception is `inventory`, with Gantry's private request codes.
"""

from core_broker.client.admin.access import AccessAccount, AccessAdmin, AccessVersion
from core_broker.client.admin.brokers import BrokerAdmin
from core_broker.client.admin.controllers import ControllerAdmin
from core_broker.client.admin.groups import GroupAdmin
from core_broker.client.admin.inventory import InventoryAdmin
from core_broker.client.admin.messages import MessageAdmin
from core_broker.client.admin.name_server import NameServerAdmin
from core_broker.client.admin.offsets import OffsetAdmin
from core_broker.client.admin.topics import TopicAdmin
from core_broker.client.admin.users import UserAdmin

__all__ = ["AccessAccount", "AccessVersion", "AdminClient"]


class AdminClient(
    TopicAdmin,
    GroupAdmin,
    OffsetAdmin,
    MessageAdmin,
    BrokerAdmin,
    ControllerAdmin,
    InventoryAdmin,
    NameServerAdmin,
    AccessAdmin,
    UserAdmin,
):
    """Query and change a cluster: ``async with AdminClient("127.0.0.1:9876") as admin``.

    Methods with an ``addr`` send to one broker; addresses are in ``cluster_info`` and
    ``topic_route``. Methods without ``addr`` send to the name servers. An admin client belongs to
    one event loop.
    """
