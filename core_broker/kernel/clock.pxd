# The clock of the kernel. The function is inline in this file, because it is called for every read.
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

# Seconds of the monotonic clock.
cdef inline double monotonic_s() noexcept nogil:
    cdef timespec time
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec + time.tv_nsec * 1e-9
