# The layout of a stored record and of a queue's unit, for all modules of the kernel; see
# message/record.py and store/consume_queue.py.
from libc.stdint cimport uint32_t

cdef extern from *:
    """
    #define GANTRY_RECORD_HEAD 88
    #define GANTRY_RECORD_MIN 91
    #define GANTRY_UNIT_BYTES 20
    #define GANTRY_RECORD_MAGIC_V1 0xDAA320A7u
    """
    # Size of the fields before the body, and of a record without body, topic and properties, bytes.
    const int RECORD_HEAD "GANTRY_RECORD_HEAD"
    const int RECORD_MIN "GANTRY_RECORD_MIN"
    # Magic code of records with a topic of at most 127 bytes.
    const uint32_t RECORD_MAGIC_V1 "GANTRY_RECORD_MAGIC_V1"
    const int UNIT_BYTES "GANTRY_UNIT_BYTES"
