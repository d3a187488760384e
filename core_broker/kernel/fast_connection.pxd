# Interface of fast_connection.py for the other modules of the kernel.
from libc.stdint cimport int64_t

from core_broker.kernel.connection_state cimport ConnectionState
from core_broker.kernel.writer cimport Writer

cdef extern from *:
    """
    /* Take the only item of a list. The list keeps its memory for the next item, which a list that
       becomes empty by its methods frees. */
    static inline PyObject *gantry_take_only(PyObject *list) {
        PyObject *item = PyList_GET_ITEM(list, 0);
        Py_SET_SIZE(list, 0);
        return item;
    }
    """
    object take_only "gantry_take_only" (list items)

cdef class FastWrites:
    # Begin of the iteration, in s of the monotonic clock; 0 outside of an iteration.
    cdef double began
    # A connection has answers outside of an iteration, and the end of the next one is scheduled.
    cdef bint is_end_coming
    # Thread that sends the answers of busy iterations, or None.
    cdef Writer _writer
    cdef bint _is_settling_scheduled
    cdef int settle(self) except -1

cdef class FastConnection:
    cdef readonly ConnectionState state
    # remoting.Connection: gets all callbacks but reads and common writes.
    cdef readonly object connection
    cdef readonly bytes peer_record
    # The peer's IP address, for the guard.
    cdef readonly bytes address
    cdef readonly int local_port
    # The last heartbeat of the connection, if it changed nothing (heartbeats.py).
    cdef public object kept_heartbeat
    cdef FastWrites _writes
    # remoting.Iteration, and its list of connections with answers.
    cdef object _iteration
    cdef list _dirty
    cdef object _transport
    # Descriptor of the socket, or -1 for writes by the transport only.
    cdef int _socket
    # The transport was given bytes, which may be unsent.
    cdef bint _may_have_unsent
    cdef int64_t _in_flight_max, _high_water_bytes
    cdef int add_answers(self, bytes answers) except -1
    cdef int write_answers(self) except -1
    cdef bytes _take_answers(self)
    cdef int free_descriptor(self) except? -1
    cdef bint _is_caught_up(self) except -1
    cdef int _write_rest(self, bytes rest) except -1
