"""The consumers, from the outside in.

push_consumer     calls a listener                running_consumer  it, started
lite_pull_consumer  is polled                     running_lite_pull   it, started
pull_consumer     asks queue by queue             group_member      what all members share
rebalance         which queues are ours           membership        who else is there
allocate          how a group shares queues       queue_locks       one owner where order matters
puller            the pull loop of one queue      process_queue     what is held of one queue
delivery          listeners beside each other     orderly_delivery  one after the other
polling           what waits for a poll           listening         calling the listener
send_back         what it could not consume       offset_stores     where offsets are kept
queue_offsets     where a queue begins and ends   broker_requests   what brokers ask of us
"""
