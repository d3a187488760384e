"""DLedger commit logs: the brokers of one name are members of a DLedger group.

codes, messages       codes and JSON bodies of DLedger 0.3.1.2
model, state          what the state machine reads and asks for; its state
election, progress, leader, follower, transfers, node
                      the state machine of a member: no clock, no I/O, effects as values
peers                 the group of the settings
state_files, checkpoint
                      term, vote and commit index on the disk
entry_store           the commit log of the broker as entries
transport             sockets
inputs, execution, member
                      a running member: its inputs, the effects of its node, its life
owner, clients        between a member and its broker; answers to clients of DLedger itself
leader_tables         a follower's copies of the tables of its leader
"""
