"""The state of a connection, and its transitions.

    open → closing → closed   a closing connection still sends its answers, but reads no more
    taking ⇄ stalled          too many answer bytes are unsent: reading pauses, requests wait
    writable ⇄ write-paused   the transport's buffer is over the high-water mark
    clean ⇄ dirty             answers are to be written at the end of the event-loop iteration
    kept ⇄ lent               the writer thread sends the answers; nobody else uses the socket

The file is used twice: as plain Python, and compiled as core_broker.kernel.connection_state with C
types for the fields, from the .pxd file. The slow path and the compiled fast path of a connection
share the state object. Event loop only.
"""


class ConnectionState:
    """Flags and counts of a connection; new connections are open, taking, clean and kept."""

    __slots__ = (
        "arrived",
        "close_reason",
        "has_receive_backlog",
        "held",
        "idle_checks",
        "is_closed",
        "is_closing",
        "is_collecting",
        "is_dirty",
        "is_lent",
        "is_stalled",
        "is_write_paused",
        "out",
        "out_bytes",
        "unfinished_bytes",
    )

    def __init__(self) -> None:
        #: True from `close` on; `close_reason` says why.
        self.is_closing = False
        #: True from `lose` on, and never False again; a closed connection is closing, too.
        self.is_closed = False
        self.close_reason = ""
        self.is_stalled = False
        self.is_write_paused = False
        self.is_dirty = False
        self.is_lent = False
        #: True while the frame splitter collects a frame longer than the read buffer.
        self.is_collecting = False
        #: True when the socket's receive queue held more than the last read took.
        self.has_receive_backlog = False
        #: Number of the peer's unanswered requests.
        self.held = 0
        #: Received bytes of an incomplete frame.
        self.unfinished_bytes = 0
        #: Idle sweeps since the last traffic.
        self.idle_checks = 0
        #: Latest possible arrival of the requests in hand, in seconds of the monotonic clock.
        self.arrived = 0.0
        #: Answers of this iteration, as frames or parts of frames; `out_bytes` is the total size.
        self.out: list[bytes] = []
        self.out_bytes = 0

    def close(self, reason: str) -> bool:
        """Open → closing; returns False, without a change, for a closing connection."""
        if self.is_closing:
            return False
        self.is_closing = True
        self.close_reason = reason
        return True

    def lose(self, reason: str) -> None:
        """Any → closed; an earlier close reason is kept."""
        self.close(reason)
        self.is_closed = True

    def stall(self) -> bool:
        """Taking → stalled; returns False for a stalled connection."""
        if self.is_stalled:
            return False
        self.is_stalled = True
        return True

    def resume(self) -> None:
        """Stalled → taking."""
        self.is_stalled = False

    def mark_dirty(self) -> bool:
        """Clean → dirty; returns False for a dirty connection."""
        if self.is_dirty:
            return False
        self.is_dirty = True
        return True

    def take_answers(self) -> bytes:
        """Dirty → clean; returns the concatenated answers."""
        out = self.out
        answers = out.pop() if len(out) == 1 else b"".join(out)
        out.clear()
        self.out_bytes = 0
        self.is_dirty = False
        return answers
