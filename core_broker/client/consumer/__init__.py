"""The push consumer, from the outside in.

push_consumer     what an application uses        running_consumer  its parts, put together
rebalance         which queues are ours           allocate          how a group shares queues
puller            the pull loop of one queue      process_queue     what is held of one queue
delivery          calling the listener            send_back         what it could not consume
offset_stores     where offsets are kept          broker_requests   what brokers ask of us
"""
