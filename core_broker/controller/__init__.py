"""The controller: who is the master of each broker set, and which replicas are in sync.

model, commands, election, machine   the pure state machine, and its commands in the log
    live_brokers            who lives, by heartbeats
    changes, role_changes   elections and other changes through the log; notices to brokers
    processor, log_requests   request codes
    peers, server           the members of the group; the running controller
"""
