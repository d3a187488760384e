"""Definitions of a cluster as one YAML document: topics, groups, users, access control lists.

model.py        the document, and the fields of each kind
reading.py      YAML to document, with the line of each fault
writing.py      document to YAML, equal bytes for equal definitions
comparing.py    the differences between a document and a cluster
cluster.py      read a cluster, apply differences

`mqadmin exportDefinitions` and `apply` share the package with the console's page and REST resource.
"""
