"""Users and access control lists of a cluster (ACL 2.0 of RocketMQ 5.3)."""
