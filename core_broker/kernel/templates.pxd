# Interface of templates.py for the other modules of the kernel.
from libc.stdint cimport int64_t, uint8_t

cdef uint8_t *put_text(uint8_t *at, bytes text) noexcept
cdef void put_lengths(uint8_t *frame, int64_t head, int64_t body) noexcept
