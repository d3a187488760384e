# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The broker's kernel under a bare epoll loop in C: the cost of sends and pulls without Python code.

An iteration does the work of a broker's event-loop iteration on the fast path: the kernel handles
the requests, one pwrite stores the records, units and index items go to memory, and each connection
gets one write. Pulls read the mapped log.
"""
import socket
import time
from array import array

from libc.errno cimport EAGAIN, errno
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy
from posix.unistd cimport pwrite

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE, PyBytes_FromStringAndSize

from core_broker.kernel.connection_state cimport ConnectionState
from core_broker.kernel.fast_path cimport FastPath
from core_broker.kernel.fast_protocol cimport FastProtocol
from core_broker.kernel.index_items import add_items

cdef extern from "sys/epoll.h" nogil:
    ctypedef union epoll_data_t:
        int fd
    struct epoll_event:
        unsigned int events
        epoll_data_t data
    int epoll_create1(int flags)
    int epoll_ctl(int epfd, int op, int fd, epoll_event *event)
    int epoll_wait(int epfd, epoll_event *events, int count, int timeout_ms)
    enum: EPOLLIN, EPOLL_CTL_ADD, EPOLL_CTL_DEL

cdef extern from "sys/socket.h" nogil:
    ssize_t recv(int fd, void *to, size_t count, int flags)
    ssize_t send(int fd, const void *data, size_t count, int flags)
    enum: MSG_NOSIGNAL

cdef extern from "poll.h" nogil:
    struct pollfd:
        int fd
        short events, revents
    int poll(pollfd *descriptors, unsigned long count, int timeout_ms)
    enum: POLLOUT

DEF EVENTS_MAX = 256
SLOTS = 5_000_000
ITEMS_MAX = 4_000_000


cdef class OpenTransport:
    """A transport without unsent bytes: the kernel sends to the socket itself."""

    def get_write_buffer_size(self):
        return 0

    def is_closing(self):
        return False


cdef class BareProtocol(FastProtocol):
    """A connection: a descriptor and an incomplete frame."""
    cdef int fd

    def __init__(self, FastPath path, list dirty, int fd, bytes peer):
        self.state = ConnectionState()
        self.fd = self._socket = fd
        self._transport = OpenTransport()
        self.peer_record = peer
        self._path = path
        self._writes = path.writes
        self._dirty = dirty
        self._high_water_bytes = 1 << 30
        self._in_flight_max = 1 << 30
        self._begin = b""


cdef void send_all(int fd, const char *data, ssize_t count) noexcept nogil:
    """Send all bytes; a full socket buffer blocks the loop until the peer has read."""
    cdef ssize_t sent
    cdef pollfd writable
    writable.fd, writable.events = fd, POLLOUT
    while count:
        sent = send(fd, data, count, MSG_NOSIGNAL)
        if sent < 0:
            if errno != EAGAIN:
                return  # the peer is gone: recv() closes the connection
            poll(&writable, 1, -1)
            continue
        data += sent
        count -= sent


def serve(listener, FastPath path, kernel, shell, int log_fd, int64_t log_bytes, bytes peer):
    """Serve forever. `shell` has `position`; its queues implement `show()`."""
    cdef epoll_event events[EVENTS_MAX]
    cdef epoll_event event
    cdef BareProtocol protocol
    cdef list dirty = []
    cdef int poll_fd = epoll_create1(0), count, i, fd, listen_fd = listener.fileno()
    cdef int64_t used, end, cut
    cdef ssize_t got
    cdef bytes numbers, answers
    cdef const unsigned char[::1] records
    protocols = {}
    sockets = []
    slots = memoryview(bytearray(4 * SLOTS)).cast("i")
    changed = bytearray(SLOTS // 1024 + 1)
    tail = bytearray()
    cdef int64_t item = 1
    event.events = EPOLLIN
    event.data.fd = listen_fd
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, listen_fd, &event)
    path.writes.began = 1.0
    while True:
        with nogil:
            count = epoll_wait(poll_fd, events, EVENTS_MAX, -1)
        path.iteration += 1
        for i in range(count):
            fd = events[i].data.fd
            if fd == listen_fd:
                connection, _ = listener.accept()
                connection.setblocking(False)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sockets.append(connection)
                protocol = BareProtocol(path, dirty, connection.fileno(), peer)
                protocols[protocol.fd] = protocol
                event.data.fd = protocol.fd
                epoll_ctl(poll_fd, EPOLL_CTL_ADD, protocol.fd, &event)
                continue
            protocol = protocols[fd]
            cut = PyBytes_GET_SIZE(protocol._begin)
            if cut:
                memcpy(path._buffer, PyBytes_AS_STRING(protocol._begin), cut)
            got = recv(fd, path._buffer + cut, path._buffer_bytes - cut, 0)
            if got <= 0:
                epoll_ctl(poll_fd, EPOLL_CTL_DEL, fd, NULL)
                del protocols[fd]
                continue
            protocol.state.arrived = time.monotonic()
            end = cut + got
            used = path.take(protocol, 0, end, 0)
            protocol._begin = PyBytes_FromStringAndSize(<char *>path._buffer + used, end - used)
        if kernel.messages:
            touched = set()
            kernel.enter_units(touched)
            for queue in touched:
                queue.show()
            records, numbers = kernel.take_records(), kernel.take_entries()
            pwrite(log_fd, &records[0], records.shape[0], shell.position % log_bytes)
            shell.position += records.shape[0]
            records = None
            entries = array("q", numbers)
            add_items(entries, slots, item, 0, tail, changed, None)
            item = item + len(entries) // 3
            if item > ITEMS_MAX:
                item = 1
            tail.clear()
        for protocol in dirty:
            answers = protocol.state.take_answers()
            send_all(protocol.fd, PyBytes_AS_STRING(answers), PyBytes_GET_SIZE(answers))
        dirty.clear()
