"""What the broker adds to the properties of every message that is sent to it.

RocketMQ 4.9 adds the cluster. RocketMQ 5 adds its region, too, and whether traces are wanted: its
consumers write no trace of a message without a region. Gantry does so where it keeps traces.
"""

from core_broker.config import BrokerConfig
from core_broker.message.properties import (
    PROPERTY_CLUSTER,
    PROPERTY_MSG_REGION,
    PROPERTY_TRACE_SWITCH,
)


def added_properties(config: BrokerConfig) -> dict[str, str]:
    """Names and values, in the order they are stored; they win over what the producer said."""
    added = {PROPERTY_CLUSTER: config.broker_cluster_name}
    if config.trace_topic_enable:
        added[PROPERTY_MSG_REGION] = config.region_id
        added[PROPERTY_TRACE_SWITCH] = "true" if config.trace_on else "false"
    return added
