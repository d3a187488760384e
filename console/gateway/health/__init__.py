"""Questions about the health of a cluster: the evidence of `console.services.findings`.

snapshot.py     brokers, settings, replication, topics and groups at one time
members.py      members and queues of single groups: subscriptions, owned queues, offsets
"""
