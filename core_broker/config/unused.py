"""Keys of RocketMQ that are accepted in a settings file without an effect here, with reasons.

A settings file written for Apache RocketMQ 4.9 starts unchanged; the loader warns about its keys
without effect, and `-p` lists the reasons. The keys are those of BrokerConfig, MessageStoreConfig,
NettyServerConfig, NettyClientConfig and NamesrvConfig of 4.9.8 that are no settings here, and the
best known keys of RocketMQ 5. A setting without effect declares its reason with its field
(`no_effect`).
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
    "Netty is not used: connection limits are fixed, socket buffers have the system's sizes": """
        channelNotActiveInterval clientChannelMaxIdleTimeSeconds clientCloseSocketIfTimeout
        clientPooledByteBufAllocatorEnable clientSocketRcvBufSize clientSocketSndBufSize
        connectTimeoutMillis serverPooledByteBufAllocatorEnable serverSocketBacklog
        serverSocketRcvBufSize serverSocketSndBufSize useEpollNativeSelector
        writeBufferHighWaterMark writeBufferLowWaterMark
        """,
    "the commit log is written with pwrite(), not through a memory mapping": """
        commitCommitLogLeastPages commitCommitLogThoroughInterval debugLockEnable
        destroyMapedFileIntervalForcibly diskFallRecorded fastFailIfNoBufferInStorePool
        flushLeastPagesWhenWarmMapedFile putMsgIndexHightWater redeleteHangedFileInterval
        transientStorePoolSize
        """,
    "files have fixed paths below storePathRootDir": """
        brokerConfigPath readOnlyCommitLogStorePaths storeCheckpoint storePathAbortFile
        storePathConsumeQueue storePathIndex
        """,
    "filters are evaluated on message properties, not on bit maps": """
        bitMapLengthConsumeQueueExt filterDataCleanTimeSpan mappedFileSizeConsumeQueueExt
        """,
    "RocketMQ 4.9.8 does not read the key, or only for logs and statistics": """
        autoDeleteUnusedStats dispatchFromSenderThread enableBatchPush enableDetailStat
        enableScheduleMessageStats flushConsumerOffsetHistoryInterval highSpeedMode
        isEnableBatchPush isolateLogEnable maxDelayTime
        """,
    "plug-ins written in Java cannot be loaded": "messageStorePlugIn",
    "users and access control lists are always in memory": """
        aclCacheExpiredSecond aclCacheMaxNum aclCacheRefreshSecond userCacheExpiredSecond
        userCacheMaxNum userCacheRefreshSecond statefulAuthenticationCacheExpiredSecond
        statefulAuthenticationCacheMaxNum statefulAuthorizationCacheExpiredSecond
        statefulAuthorizationCacheMaxNum
        """,
    "delayed messages are delivered by the event loop, in order": """
        enableScheduleAsyncDeliver scheduleAsyncDeliverMaxPendingLimit
        scheduleAsyncDeliverMaxResendNum2Blocked
        """,
    "the key belongs to hosted services": """
        accessKey commercialBaseCount commercialBigCount commercialEnable commercialTimerCount
        commercialTransCount fetchNamesrvAddrByAddressServer secretKey
        """,
    "metrics are always on, at httpPort": "metricsExporterType metricsPromExporterPort",
    "a DLedger group and a sync-state set count their members": "totalReplicas",
    "the key belongs to a feature of RocketMQ 5 that is not available in this version": """
        defaultMessageRequestMode deleteTopicWithBrokerRegistration enableAllTopicList
        enableRetryTopicV2 enableTopicList litePullMessageEnable maxLmqConsumeQueueNum
        needWaitForService notifyMinBrokerIdChanged popPollingSize recallMessageEnable
        reviveQueueNum serverLoadBalancerEnable supportActingMaster timerMaxDelaySec
        timerWheelEnable useServerSideResetOffset waitSecondsForService
        """,
}
#: Key -> reason.
KEYS_WITHOUT_EFFECT = {
    key: reason for reason, keys in _WITHOUT_EFFECT.items() for key in sorted(keys.split())
}
