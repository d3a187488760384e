# Interface of properties.py for the other modules of the kernel.
from libc.stdint cimport uint8_t

from core_broker.kernel.octets cimport Text

cdef class Properties:
    cdef uint8_t *text
    cdef int count
    # False when the message's own properties have characters beyond ASCII, as valid UTF-8.
    cdef bint is_ascii
    # Maximum size of the broker's own properties with a separator, bytes.
    cdef int added_max
    cdef Text unique_key, keys, tags, wait
    cdef bytes _added
    cdef bint normalize(self, Text given, bint is_ascii) noexcept
    cdef bint _note(self, Text name, Text value) noexcept
    cdef void drop_wait(self) noexcept
