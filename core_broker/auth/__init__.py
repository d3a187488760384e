"""Access control: who sends a request, and whether the account may.

    contracts.py   interfaces between the gate, the rules of ACL 1.0 and those of ACL 2.0
    gate.py        the one decision point of a server; all paths of a request ask the gate
    server_settings.py  settings that servers without access control check, too
    users_file.py  users of ACL 2.0: settings and file
    user_handlers.py, users_processor.py  the request codes 3001 to 3010
    refusals.py    observers of the gate: counters and log lines,
    audit.py       audit lines of denied and administrative requests,
    back_off.py    pauses after failed attempts,
    replays.py     refusal of replayed sends
    explanation.py why an account may publish or consume: the decision and its rules

The server's paths ask a `Gate`. The gate asks the rules: `Rules` of RocketMQ's ACL 1.0, of ACL 2.0,
or of both. A server without access control has no gate.
"""
