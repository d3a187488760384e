"""What a broker answers: one file for one subject, each with the request codes it handles.

`table` joins codes and handlers. A handler gets the connection and the request; it returns the
answer, or None when the answer comes later. It raises RequestRefused to refuse.

    produce    admission, send, send_back, failed_messages, delays, delay_delivery, put_answers,
               transactions, transaction_checks, replies
    consume    pull, offsets, locks, clients, query
    manage     topics, groups, connections, consume_stats, relays, settings, runtime_info,
               statistics, cleaning
    shared     context (the parts of the broker), turn (the end of a loop turn), remarks
"""
