"""ACL 1.0, the access control of RocketMQ 4: accounts and white lists in `plain_acl.yml`."""
