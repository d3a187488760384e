"""Accounts and global white list of a cluster (ACL 1.0, plain_acl.yml).

processes    what each broker process answers      listing   the accounts over all processes
permissions  texts of permissions and addresses    changes   commands for accounts
refusals     explanations                          white_list  the global white list
"""
