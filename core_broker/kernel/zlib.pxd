cdef extern from "zlib.h" nogil:
    unsigned long crc32(unsigned long crc, const unsigned char *bytes, unsigned int count)
