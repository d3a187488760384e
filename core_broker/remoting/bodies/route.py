"""Routes of topics and members of clusters: the answers of name servers to clients.

Compatible with RocketMQ's MessageQueue, QueueData, BrokerData, TopicRouteData and ClusterInfo.
"""

from msgspec import Struct

PERM_PRIORITY = 0x8
PERM_READ = 0x4
PERM_WRITE = 0x2
PERM_INHERIT = 0x1

MASTER_ID = 0


class MessageQueue(Struct, rename="camel", frozen=True, order=True):
    """A queue of a topic on a broker; the key of many tables."""

    topic: str
    broker_name: str
    queue_id: int

    def __str__(self) -> str:
        return f"{self.topic}@{self.broker_name}:{self.queue_id}"


class QueueData(Struct, rename="camel", kw_only=True):
    """The queues of a topic on one broker."""

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    topic_sys_flag: int = 0

    @property
    def is_readable(self) -> bool:
        """True when the permission lets consumers read."""
        return self.perm & PERM_READ != 0

    @property
    def is_writable(self) -> bool:
        """True when the permission lets producers write."""
        return self.perm & PERM_WRITE != 0


class BrokerData(Struct, rename="camel", kw_only=True):
    """The addresses of a broker's master (id 0) and slaves."""

    cluster: str = ""
    broker_name: str
    broker_addrs: dict[int, str] = {}
    enable_acting_master: bool | None = None
    zone_name: str | None = None

    @property
    def master_addr(self) -> str | None:
        """Address of the master; None without a registered master."""
        return self.broker_addrs.get(MASTER_ID)


class TopicRouteData(Struct, rename="camel", kw_only=True):
    """Answer to GET_ROUTEINFO_BY_TOPIC (105)."""

    queue_datas: list[QueueData] = []
    broker_datas: list[BrokerData] = []
    filter_server_table: dict[str, list[str]] = {}
    order_topic_conf: str | None = None


class ClusterInfo(Struct, rename="camel", kw_only=True):
    """Answer to GET_BROKER_CLUSTER_INFO (106)."""

    broker_addr_table: dict[str, BrokerData] = {}
    cluster_addr_table: dict[str, list[str]] = {}
