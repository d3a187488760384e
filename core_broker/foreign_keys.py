"""Keys of RocketMQ that are accepted in a settings file without having an effect here.

Most of them size thread pools and socket buffers of the Java processes. A settings file written for
Apache RocketMQ starts unchanged; the loader tells which of its keys do nothing.
"""

KEYS_WITHOUT_EFFECT = frozenset(
    """
    accessKey adminBrokerThreadPoolNums autoDeleteUnusedStats bitMapLengthConsumeQueueExt
    brokerConfigPath channelNotActiveInterval clientAsyncSemaphoreValue
    clientCallbackExecutorThreads clientChannelMaxIdleTimeSeconds clientCloseSocketIfTimeout
    clientManageThreadPoolNums clientManagerThreadPoolQueueCapacity clientOnewaySemaphoreValue
    clientPooledByteBufAllocatorEnable clientRequestThreadPoolNums
    clientRequestThreadPoolQueueCapacity clientSocketRcvBufSize clientSocketSndBufSize
    clientWorkerThreads commercialBaseCount commercialBigCount commercialEnable
    commercialTimerCount commercialTransCount commitCommitLogLeastPages
    commitCommitLogThoroughInterval connectTimeoutMillis consumerManageThreadPoolNums
    consumerManagerThreadPoolQueueCapacity dLegerGroup dLegerPeers dLegerSelfId debugLockEnable
    defaultThreadPoolNums defaultThreadPoolQueueCapacity destroyMapedFileIntervalForcibly
    diskFallRecorded dispatchFromSenderThread enableBatchPush enableControllerMode
    enableDLegerCommitLog enableDetailStat enableScheduleAsyncDeliver enableScheduleMessageStats
    endTransactionPoolQueueCapacity endTransactionThreadPoolNums fastFailIfNoBufferInStorePool
    fetchNamesrvAddrByAddressServer filterDataCleanTimeSpan
    flushConsumerOffsetHistoryInterval flushLeastPagesWhenWarmMapedFile
    heartbeatThreadPoolNums heartbeatThreadPoolQueueCapacity highSpeedMode isEnableBatchPush
    isolateLogEnable mappedFileSizeConsumeQueueExt maxDelayTime maxLmqConsumeQueueNum
    messageStorePlugIn metricsExporterType metricsPromExporterPort preferredLeaderId
    processReplyMessageThreadPoolNums pullMessageThreadPoolNums putMessageFutureThreadPoolNums
    putMsgIndexHightWater putThreadPoolQueueCapacity queryMessageThreadPoolNums
    queryThreadPoolQueueCapacity redeleteHangedFileInterval replyThreadPoolQueueCapacity
    secretKey sendMessageThreadPoolNums serverAsyncSemaphoreValue serverCallbackExecutorThreads
    serverOnewaySemaphoreValue serverPooledByteBufAllocatorEnable serverSelectorThreads
    serverSocketBacklog serverSocketRcvBufSize serverSocketSndBufSize serverWorkerThreads
    storePathAbortFile storePathConsumeQueue storePathIndex storeCheckpoint transientStorePoolSize
    useEpollNativeSelector useReentrantLockWhenPutMessage writeBufferHighWaterMark
    writeBufferLowWaterMark
    """.split()  # noqa: SIM905 - ninety quoted names would be harder to read
)

# Settings that ask for something this version does not have. Going on without it would be
# dangerous (an open broker, a master that does not replicate), so the process refuses to start.
# The values stand in lower case.
REFUSED_VALUES = {
    ("aclEnable", "true"): "false; access control is not available in this version",
    ("brokerRole", "slave"): "ASYNC_MASTER; replication is not available in this version",
    ("brokerRole", "sync_master"): "ASYNC_MASTER; replication is not available in this version",
    ("clusterTest", "true"): "false; forwarding to another environment is not available",
    ("enableControllerMode", "true"): "false; controller mode is not available in this version",
    ("enableDLegerCommitLog", "true"): "false; DLedger is not available in this version",
    ("useTLS", "true"): "false; encryption is not available in this version",
}
