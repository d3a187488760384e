# Prefetching bytes into the processor's cache. Records of one queue do not lie side by side, so the
# processor's own prefetcher does not find them.
from libc.stdint cimport int64_t, uint8_t

cdef extern from *:
    """
    #include <stdint.h>

    #define GANTRY_CACHE_LINE 64
    #define GANTRY_PREFETCH_MAX 4096

    static void gantry_prefetch(const uint8_t *at, int64_t count) {
    #ifdef __GNUC__
        const uint8_t *end = at + (count < GANTRY_PREFETCH_MAX ? count : GANTRY_PREFETCH_MAX);
        for (; at < end; at += GANTRY_CACHE_LINE) __builtin_prefetch(at);
    #endif
    }
    """
    void prefetch "gantry_prefetch" (const uint8_t *at, int64_t count) nogil
