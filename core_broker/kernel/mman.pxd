from libc.stdint cimport int64_t

cdef extern from "sys/mman.h" nogil:
    int PROT_READ
    int MAP_SHARED
    void *MAP_FAILED
    void *mmap(void *address, size_t count, int protection, int flags, int fd, int64_t at)
    int munmap(void *address, size_t count)
    int mincore(void *address, size_t count, unsigned char *pages)
