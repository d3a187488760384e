"""The controller: who is the master of each broker set, and which replicas are in sync.

model, commands, election, machine   the pure state machine, and its commands in the log
"""
