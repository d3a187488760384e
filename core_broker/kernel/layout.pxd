# The layout of a stored record and of a queue's unit, as far as more than one module needs it; see
# message/record.py and store/consume_queue.py.
from libc.stdint cimport uint32_t

cdef extern from *:
    """
    #define GANTRY_RECORD_HEAD 88
    #define GANTRY_RECORD_MIN 91
    #define GANTRY_UNIT_BYTES 20
    #define GANTRY_RECORD_MAGIC_V1 0xDAA320A7u
    """
    # What comes before the body, and a record beside its body, topic and properties.
    const int RECORD_HEAD "GANTRY_RECORD_HEAD"
    const int RECORD_MIN "GANTRY_RECORD_MIN"
    # That of records with a short topic.
    const uint32_t RECORD_MAGIC_V1 "GANTRY_RECORD_MAGIC_V1"
    const int UNIT_BYTES "GANTRY_UNIT_BYTES"
