"""Users and access control lists (ACL 2.0): pages and REST resources."""
