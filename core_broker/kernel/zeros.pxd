# Asking Linux to begin writing a part of a file out; elsewhere nobody is asked.
from libc.stdint cimport int64_t

cdef extern from *:
    """
    #ifdef __linux__
    #include <fcntl.h>
    static void gantry_start_writeback(int fd, int64_t at, int64_t size) {
        (void)sync_file_range(fd, at, size, SYNC_FILE_RANGE_WRITE);
    }
    #else
    static void gantry_start_writeback(int fd, int64_t at, int64_t size) {
        (void)fd, (void)at, (void)size;
    }
    #endif
    """
    void start_writeback "gantry_start_writeback" (int fd, int64_t at, int64_t size) nogil
