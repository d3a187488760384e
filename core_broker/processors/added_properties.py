"""Properties that the broker adds to every message from a producer.

RocketMQ 4.9 adds the cluster name. RocketMQ 5 also adds the region and the trace switch, because
RocketMQ 5 consumers write no trace of a message without a region. Gantry adds region and trace
switch with traceTopicEnable=true.
"""

from core_broker.config import BrokerConfig
from core_broker.message.properties import (
    PROPERTY_CLUSTER,
    PROPERTY_MSG_REGION,
    PROPERTY_TRACE_SWITCH,
)


def added_properties(config: BrokerConfig) -> dict[str, str]:
    """Names and values in storage order; they replace the producer's values of the same names."""
    added = {PROPERTY_CLUSTER: config.broker_cluster_name}
    if config.trace_topic_enable:
        added[PROPERTY_MSG_REGION] = config.region_id
        added[PROPERTY_TRACE_SWITCH] = "true" if config.trace_on else "false"
    return added
