"""The catalogue of commands: name, module and summary of each command.

`mqadmin help` prints the catalogue without importing a command's module: the tool starts fast.
Names and aliases are RocketMQ 4.9.8's; updateTopicList, updateSubGroupList, the commands from
haStatus to updateControllerConfig and those from createUser to copyAcl are those of 5.3.3.
checkAccess, drainBroker, kickClient, exportDefinitions and apply are Gantry's own. Upper and lower
case are equal. RocketMQ has classes for the last four commands, but registers none of them.
"""

from typing import Final, NamedTuple


class Entry(NamedTuple):
    """One command. Its click object is `<module>.<name in snake_case>`."""

    module: str
    help: str


CATALOG: Final[dict[str, Entry]] = {
    "updateTopic": Entry("topic_changes", "Update or create topic."),
    "updateTopicList": Entry("lists", "Create or update topics in batch."),
    "deleteTopic": Entry("topic_changes", "Delete topic from broker and NameServer."),
    "updateSubGroup": Entry("groups", "Update or create subscription group."),
    "updateSubGroupList": Entry("lists", "Update or create subscription groups in batch."),
    "deleteSubGroup": Entry("groups", "Delete subscription group from broker."),
    "updateBrokerConfig": Entry("brokers", "Update broker's config."),
    "updateTopicPerm": Entry("topic_changes", "Update topic perm."),
    "topicRoute": Entry("topics", "Examine topic route info."),
    "topicStatus": Entry("topics", "Examine topic status info."),
    "topicClusterList": Entry("topics", "Get cluster info for topic."),
    "brokerStatus": Entry("brokers", "Fetch broker runtime status data."),
    "haStatus": Entry("ha_status", "Fetch ha runtime status data."),
    "resetMasterFlushOffset": Entry("ha_status", "Reset master flush offset in slave."),
    "getSyncStateSet": Entry("replicas", "Fetch syncStateSet for target brokers."),
    "getBrokerEpoch": Entry("replicas", "Fetch broker epoch entries."),
    "electMaster": Entry("controllers", "Re-elect the specified broker as master."),
    "cleanBrokerMetadata": Entry("controllers", "Clean metadata of broker on controller."),
    "getControllerMetaData": Entry("controllers", "Get controller cluster's metadata."),
    "getControllerConfig": Entry("controllers", "Get controller config."),
    "updateControllerConfig": Entry("controllers", "Update controller config."),
    "queryMsgById": Entry("queries", "Query message by id."),
    "queryMsgByKey": Entry("queries", "Query message by key."),
    "queryMsgByUniqueKey": Entry("queries", "Query message by unique key."),
    "queryMsgByOffset": Entry("queries", "Query message by offset."),
    "queryMsgTraceById": Entry("traces", "Query a message trace."),
    "printMsg": Entry("reading", "Print message detail."),
    "printMsgByQueue": Entry("reading", "Print message detail of one queue."),
    "sendMsgStatus": Entry("probes", "Send messages to a broker and show each result."),
    "brokerConsumeStats": Entry("brokers", "Fetch broker consume stats data."),
    "producerConnection": Entry(
        "connections", "Query producer's socket connection and client version."
    ),
    "consumerConnection": Entry(
        "connections", "Query consumer's socket connection, client version and subscription."
    ),
    "consumerProgress": Entry("progress", "Query consumers' progress, speed."),
    "consumerStatus": Entry("consumers", "Query consumer's internal data structure."),
    "cloneGroupOffset": Entry("offsets", "Clone offset from other group."),
    "kickClient": Entry("kicks", "Close the connections of a client, with a reason."),
    "producer": Entry("connections", "Query producers' instances, connection, status."),
    "clusterList": Entry("clusters", "List all of clusters."),
    "topicList": Entry("topics", "Fetch all topic list from name server."),
    "updateKvConfig": Entry("name_servers", "Create or update KV config."),
    "deleteKvConfig": Entry("name_servers", "Delete KV config."),
    "wipeWritePerm": Entry("name_servers", "Wipe write perm of broker in all name servers."),
    "drainBroker": Entry("drain", "Prepare the stop of a broker: no sends, no backlog."),
    "addWritePerm": Entry("name_servers", "Add write perm of broker in all name servers."),
    "resetOffsetByTime": Entry("offsets", "Reset consumer offset by timestamp."),
    "skipAccumulatedMessage": Entry(
        "offsets", "Skip all messages that are accumulated (not consumed) currently."
    ),
    "updateOrderConf": Entry("topic_changes", "Create or update or delete order conf."),
    "cleanExpiredCQ": Entry("cleaning", "Clean expired ConsumeQueue on broker."),
    "deleteExpiredCommitLog": Entry("cleaning", "Delete expired CommitLog files."),
    "cleanUnusedTopic": Entry("cleaning", "Clean unused topic on broker."),
    "startMonitoring": Entry("monitoring", "Start monitoring."),
    "statsAll": Entry("statistics", "Topic and consumer TPS stats."),
    "allocateMQ": Entry("topics", "Allocate queues to clients, as a group would."),
    "checkMsgSendRT": Entry("probes", "Check message send response time."),
    "clusterRT": Entry("probes", "List all clusters' message send RT."),
    "getNamesrvConfig": Entry("name_servers", "Get configs of name server."),
    "updateNamesrvConfig": Entry("name_servers", "Update configs of name server."),
    "getBrokerConfig": Entry("brokers", "Get broker config by cluster or special broker."),
    "getConsumerConfig": Entry("groups", "Get consumer config by subscription group name."),
    "queryCq": Entry("queries", "Query consume queue."),
    "sendMessage": Entry("probes", "Send a message."),
    "consumeMessage": Entry("reading", "Consume message."),
    "updateAclConfig": Entry("access", "Update ACL config yaml file in broker."),
    "deleteAclConfig": Entry("access", "Delete ACL config account in broker."),
    "clusterAclConfigVersion": Entry("access", "List ACL config versions of a cluster."),
    "updateGlobalWhiteAddr": Entry(
        "access", "Update global white address for ACL config file in broker."
    ),
    "createUser": Entry("users", "Create user to cluster."),
    "updateUser": Entry("users", "Update user to cluster."),
    "deleteUser": Entry("users", "Delete user from cluster."),
    "getUser": Entry("users", "Get user from cluster."),
    "listUser": Entry("users", "List user from cluster."),
    "copyUser": Entry("users", "Copy user to cluster."),
    "createAcl": Entry("acls", "Create acl to cluster."),
    "updateAcl": Entry("acls", "Update acl to cluster."),
    "deleteAcl": Entry("acls", "Delete acl from cluster."),
    "getAcl": Entry("acls", "Get acl from cluster."),
    "listAcl": Entry("acls", "List acl from cluster."),
    "copyAcl": Entry("acls", "Copy acl to cluster."),
    "checkAccess": Entry("access_checks", "Explain whether an account may publish or consume."),
    "exportMetadata": Entry("exports", "Export metadata."),
    "exportConfigs": Entry("exports", "Export configs."),
    "exportDefinitions": Entry("definitions", "Export topics, groups and permissions as YAML."),
    "apply": Entry("definitions", "Apply a file of definitions to a cluster."),
    "exportMetrics": Entry("metrics", "Export metrics."),
    "consumer": Entry("consumers", "Query consumer's internal data structure (older form)."),
    "getConsumerStatus": Entry("offsets", "Get consumer status from client."),
    "resetOffsetByTimeOld": Entry("offsets", "Reset consumer offset without telling consumers."),
    "DecodeMessageId": Entry("queries", "Decode unique message ID."),
}

ALIASES: Final = {"deleteaccessconfig": "deleteAclConfig"}


def find_name(name: str) -> str | None:
    """Return the command name in RocketMQ's spelling; None for an unknown command."""
    return _BY_LOWER_CASE.get(name.lower())


_BY_LOWER_CASE: Final = {name.lower(): name for name in CATALOG} | ALIASES
