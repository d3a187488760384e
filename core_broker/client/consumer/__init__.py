"""The consumers, from the public classes to the parts.

push_consumer       calls a listener               running_consumer   a started push consumer
lite_pull_consumer  polled by the application      running_lite_pull  a started lite pull consumer
pull_consumer       pulls queue by queue           group_member       base of started consumers
rebalance           starts and releases queues     membership         queues by the member list
allocate            allocation strategies          queue_locks        locks for orderly consuming
puller              the pull loop of one queue     process_queue      cached messages of one queue
delivery            concurrent listener calls      orderly_delivery   orderly listener calls
polling             messages ready for a poll      listening          one call of the listener
send_back           failed messages to brokers     offset_stores      offsets on brokers, in files
queue_offsets       min, max and start offsets     broker_requests    requests sent by brokers
settings            settings of consumers          stats              statistics for code 307
"""
