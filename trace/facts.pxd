# C types for trace/facts.py.
cimport cython
from libc.stdint cimport int64_t

cdef int64_t _NULL, _HOUR_MS, _LOOKBACK_MS
cdef int64_t _PUB, _SUB_BEFORE, _END_TRANSACTION, _RECALL, _HALF, _DELAY

cdef class Events:
    cdef int64_t[::1] message, request, kind, is_call, event_ms, stored_ms, timestamp_ms, group, topic, msg_type
    cdef int64_t[::1] cost_ms, body_bytes, retry_times, success, is_commit, batch_index, batch_size, tags

cdef class MessageFacts:
    cdef Events _events
    cdef list _requests, _topics, _groups
    cdef dict _group_codes
    cdef int64_t[::1] _send_rows, _attempt_rows, _awaited
    cdef object _hours, _limits
    cdef readonly Py_ssize_t sends, attempts
    cdef Py_ssize_t _groups_awaited

    @cython.locals(message=int64_t[::1], first=Py_ssize_t, after=Py_ssize_t, end=Py_ssize_t)
    cpdef derive(self)
    @cython.locals(events=Events, sends=list, attempts=dict, recorded=list, is_cancelled=bint, is_committed=bint,
                   row=Py_ssize_t, kind=int64_t, stored_ms=int64_t)
    cdef _add(self, Py_ssize_t first, Py_ssize_t after)
    @cython.locals(events=Events, attempts=dict, begin=Py_ssize_t, end=Py_ssize_t, request=int64_t)
    cdef dict _attempts_by_group(self, Py_ssize_t row, Py_ssize_t after)
    @cython.locals(events=Events)
    cdef _begin(self, Py_ssize_t row)
    @cython.locals(events=Events, at_ms=int64_t)
    cdef _end(self, Py_ssize_t row)
    @cython.locals(rows=int64_t[::1], message=int64_t, stored_ms=int64_t, first_stored_ms=int64_t, at_ms=int64_t, topic=int64_t,
                   producer=int64_t, kind=int64_t, member=int64_t, batch=int64_t, size=int64_t, cost_ms=int64_t, success=int64_t,
                   tags=int64_t, awaited=int64_t, to=Py_ssize_t)
    cdef int64_t _add_sends(self, Py_ssize_t first, list sends, dict attempts) except? -1
    @cython.locals(rows=int64_t[::1], message=int64_t, code=int64_t, ordered=list, corrected=list, sent_ms=int64_t,
                   end_to_end_ms=int64_t, index=Py_ssize_t, start_ms=int64_t, cause_sent_ms=int64_t,
                   cause_stored_ms=int64_t, kind=int64_t, topic=int64_t, producer=int64_t, latency_ms=int64_t, to=Py_ssize_t)
    cdef _add_attempts(self, Py_ssize_t first, str group, list recorded, tuple origin, int64_t stored_ms)

cdef bint _is_near(int64_t sent_ms, int64_t start_ms)
cdef _known(int64_t value)
cdef int64_t _stored(value) except? -1
