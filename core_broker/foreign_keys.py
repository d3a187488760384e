"""Keys of RocketMQ that are accepted in a settings file without having an effect here, and why.

A settings file written for Apache RocketMQ 4.9 starts unchanged; the loader tells which of its keys
do nothing, and `-p` lists them all. The keys are those of BrokerConfig, MessageStoreConfig,
NettyServerConfig, NettyClientConfig and NamesrvConfig of 4.9.8 that `config.py` does not have, and
the best known ones of RocketMQ 5.
"""

# Reason -> keys.
_WITHOUT_EFFECT = {
    "one event loop does the work of thread pools": """
        adminBrokerThreadPoolNums clientAsyncSemaphoreValue clientCallbackExecutorThreads
        clientManageThreadPoolNums clientManagerThreadPoolQueueCapacity clientOnewaySemaphoreValue
        clientRequestThreadPoolNums clientRequestThreadPoolQueueCapacity clientWorkerThreads
        consumerManageThreadPoolNums consumerManagerThreadPoolQueueCapacity defaultThreadPoolNums
        defaultThreadPoolQueueCapacity endTransactionPoolQueueCapacity endTransactionThreadPoolNums
        heartbeatThreadPoolNums heartbeatThreadPoolQueueCapacity processReplyMessageThreadPoolNums
        pullMessageThreadPoolNums putMessageFutureThreadPoolNums putThreadPoolQueueCapacity
        queryMessageThreadPoolNums queryThreadPoolQueueCapacity replyThreadPoolQueueCapacity
        sendMessageThreadPoolNums serverAsyncSemaphoreValue serverCallbackExecutorThreads
        serverOnewaySemaphoreValue serverSelectorThreads serverWorkerThreads
        unRegisterBrokerQueueCapacity useReentrantLockWhenPutMessage
        """,
    "there is no Netty: limits of connections are fixed, buffers are the system's": """
        channelNotActiveInterval clientChannelMaxIdleTimeSeconds clientCloseSocketIfTimeout
        clientPooledByteBufAllocatorEnable clientSocketRcvBufSize clientSocketSndBufSize
        connectTimeoutMillis serverPooledByteBufAllocatorEnable serverSocketBacklog
        serverSocketRcvBufSize serverSocketSndBufSize useEpollNativeSelector
        writeBufferHighWaterMark writeBufferLowWaterMark
        """,
    "files are written, not mapped into memory": """
        commitCommitLogLeastPages commitCommitLogThoroughInterval debugLockEnable
        destroyMapedFileIntervalForcibly diskFallRecorded fastFailIfNoBufferInStorePool
        flushLeastPagesWhenWarmMapedFile putMsgIndexHightWater redeleteHangedFileInterval
        transientStorePoolSize
        """,
    "files have fixed places below storePathRootDir": """
        brokerConfigPath readOnlyCommitLogStorePaths storeCheckpoint storePathAbortFile
        storePathConsumeQueue storePathIndex
        """,
    "bit maps of filters are not kept: filters are computed when they are needed": """
        bitMapLengthConsumeQueueExt filterDataCleanTimeSpan mappedFileSizeConsumeQueueExt
        """,
    "no version of RocketMQ 4.9 that we know reads it, or it only says what is logged": """
        autoDeleteUnusedStats dispatchFromSenderThread enableBatchPush enableDetailStat
        enableScheduleMessageStats flushConsumerOffsetHistoryInterval highSpeedMode
        isEnableBatchPush isolateLogEnable maxDelayTime messageStorePlugIn
        """,
    "delayed messages are delivered by the event loop, in order": """
        enableScheduleAsyncDeliver scheduleAsyncDeliverMaxPendingLimit
        scheduleAsyncDeliverMaxResendNum2Blocked
        """,
    "it belongs to hosted services": """
        accessKey commercialBaseCount commercialBigCount commercialEnable commercialTimerCount
        commercialTransCount fetchNamesrvAddrByAddressServer secretKey
        """,
    "metrics are always on, at httpPort": "metricsExporterType metricsPromExporterPort",
    "replication is not available in this version": """
        dLegerGroup dLegerPeers dLegerSelfId inSyncReplicas minInSyncReplicas preferredLeaderId
        storePathDLedgerCommitLog totalReplicas
        """,
    "it belongs to a part of RocketMQ 5 that is not available in this version": """
        defaultMessageRequestMode deleteTopicWithBrokerRegistration enableAllTopicList
        enableRetryTopicV2 enableTopicList litePullMessageEnable maxLmqConsumeQueueNum
        needWaitForService notifyMinBrokerIdChanged popPollingSize recallMessageEnable
        reviveQueueNum serverLoadBalancerEnable supportActingMaster timerMaxDelaySec
        timerWheelEnable useServerSideResetOffset waitSecondsForService
        """,
}
#: Key -> why it has no effect here.
KEYS_WITHOUT_EFFECT = {
    key: reason for reason, keys in _WITHOUT_EFFECT.items() for key in sorted(keys.split())
}

# Settings that ask for something this version does not have. Going on without it would be
# dangerous (an open broker, a master that does not replicate), so the process refuses to start.
# The values stand in lower case.
REFUSED_VALUES = {
    ("aclEnable", "true"): "false; access control is not available in this version",
    ("authenticationEnabled", "true"): "false; access control is not available in this version",
    ("authorizationEnabled", "true"): "false; access control is not available in this version",
    ("brokerRole", "slave"): "ASYNC_MASTER; replication is not available in this version",
    ("brokerRole", "sync_master"): "ASYNC_MASTER; replication is not available in this version",
    ("clusterTest", "true"): "false; forwarding to another environment is not available",
    ("enableControllerInNamesrv", "true"): "false; controllers are not available in this version",
    ("enableControllerMode", "true"): "false; controller mode is not available in this version",
    ("enableDLegerCommitLog", "true"): "false; DLedger is not available in this version",
    ("enableLmq", "true"): "false; light queues are not available in this version",
    ("enableMultiDispatch", "true"): "false; light queues are not available in this version",
    ("useTLS", "true"): "false; encryption is not available in this version",
}
REFUSED_KEYS = frozenset(key for key, _ in REFUSED_VALUES)


def listing_of_others() -> str:
    """What `-p` prints after the settings, as comments of a settings file."""
    lines = ["# Keys of RocketMQ that are accepted and have no effect here:"]
    for reason, keys in _WITHOUT_EFFECT.items():
        lines += [f"# {key}: {reason}" for key in sorted(keys.split())]
    lines.append("# Values that are refused:")
    lines += [f"# {key}={value}: use {advice}" for (key, value), advice in REFUSED_VALUES.items()]
    return "\n".join(lines) + "\n"
