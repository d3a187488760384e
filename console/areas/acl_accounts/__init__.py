"""Accounts and global white list of access control (ACL 1.0): pages and REST resources."""
