"""ACL 2.0, the access control of RocketMQ 5.3: users, access control lists and their decisions.

    model            users, resources, actions, lists
    source_addresses the addresses of an entry
    priority         which of several matching entries decides
    demands          the resources and actions that a request code needs
    rules            one generation of users and lists, as the gate asks it
    tables           users and lists; changes of them by the rules of the codes 3001 to 3008
    stored           the content of the file with users and lists
    encryption       encryption of passwords in the file
    migration        users and lists from the accounts of ACL 1.0

Pure.
"""
