"""The broker's request handlers: one file per subject, with the request codes in its docstring.

`table` maps request codes to handlers. A handler gets the connection and the request. The handler
returns the answer, or None when the answer is sent later, or raises RequestRefused.

    produce    admission, send, send_back, failed_messages, delays, delay_delivery, put_answers,
               transactions, transaction_checks, replies
    consume    pull, offsets, locks, clients, query
    manage     topics, groups, connections, consume_stats, relays, settings, runtime_info,
               statistics, cleaning
    shared     context (the parts of the broker), turn (the end of a loop iteration), remarks
"""
