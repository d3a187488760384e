"""Replication of the commit log from a master to its slaves.

With fixed roles, RocketMQ's plain master/slave mode:

A slave connects to the HA port of the master. The master sends the bytes of the commit log as
packets; the slave reports the end of its own log. Compatible with RocketMQ's DefaultHAService.

    frames           both directions as bytes, for master and slave
    master           port for slaves, and sends that wait for slaves
    slave_link       one connection to a slave
    waiting_sends, pace, admission, master_metrics   parts of the master

    slave            finds the master, and runs the two parts below
    client           copies the log of the master
    synchronization  copies topics, groups, consumer offsets and delay progress of the master

Under controllers, RocketMQ's AutoSwitch HA, with parts of the above:

    switch_frames       both directions as bytes
    switch_master       a connection of a slave, without I/O; on a socket: switch_link
    switch_slave        a connection to a master, without I/O; on a socket: switch_client
    switch_replication  port, sync-state set, confirm offset and waiting sends of the elected master
    sync_states         the sync-state set, pure
    switch_follower     the part of a slave of an elected master
    rollback            progress that a truncation takes back
"""
