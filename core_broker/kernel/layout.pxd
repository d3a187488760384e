# Numbers of the formats that several kernel modules use: of a stored record with IPv4 hosts
# (message/record_layout.py), of a queue's unit (store/unit_layout.py) and of a frame
# (remoting/frame_layout.py). tests/unit/kernel/test_layouts.py compares them with those files.
from libc.stdint cimport uint32_t

cdef extern from *:
    """
    #define GANTRY_RECORD_HEAD 88
    #define GANTRY_RECORD_MIN 91
    #define GANTRY_RECORD_MAGIC_V1 0xDAA320A7u
    #define GANTRY_RECORD_MAGIC_V2 0xDAA320ABu
    #define GANTRY_MAGIC_AT 4
    #define GANTRY_BODY_CRC_AT 8
    #define GANTRY_QUEUE_ID_AT 12
    #define GANTRY_FLAG_AT 16
    #define GANTRY_QUEUE_OFFSET_AT 20
    #define GANTRY_PHYSICAL_OFFSET_AT 28
    #define GANTRY_SYS_FLAG_AT 36
    #define GANTRY_BORN_TIMESTAMP_AT 40
    #define GANTRY_BORN_HOST_AT 48
    #define GANTRY_STORE_TIMESTAMP_AT 56
    #define GANTRY_STORE_HOST_AT 64
    #define GANTRY_RECONSUME_TIMES_AT 72
    #define GANTRY_PREPARED_TRANSACTION_OFFSET_AT 76
    #define GANTRY_BODY_LENGTH_AT 84
    #define GANTRY_CRC_MASK 0x7FFFFFFFu
    #define GANTRY_BORN_HOST_V6 0x10u
    #define GANTRY_STORE_HOST_V6 0x20u
    #define GANTRY_V6_EXTRA 12
    #define GANTRY_UNIT_BYTES 20
    #define GANTRY_FRAME_HEAD 8
    """
    # Size of the fields before the body, and of a record without body, topic and properties.
    const int RECORD_HEAD "GANTRY_RECORD_HEAD"
    const int RECORD_MIN "GANTRY_RECORD_MIN"
    # Magic of records with a topic of at most 127 bytes, and of longer topics.
    const uint32_t RECORD_MAGIC_V1 "GANTRY_RECORD_MAGIC_V1"
    const uint32_t RECORD_MAGIC_V2 "GANTRY_RECORD_MAGIC_V2"
    const int MAGIC_AT "GANTRY_MAGIC_AT"
    const int BODY_CRC_AT "GANTRY_BODY_CRC_AT"
    const int QUEUE_ID_AT "GANTRY_QUEUE_ID_AT"
    const int FLAG_AT "GANTRY_FLAG_AT"
    const int QUEUE_OFFSET_AT "GANTRY_QUEUE_OFFSET_AT"
    const int PHYSICAL_OFFSET_AT "GANTRY_PHYSICAL_OFFSET_AT"
    const int SYS_FLAG_AT "GANTRY_SYS_FLAG_AT"
    const int BORN_TIMESTAMP_AT "GANTRY_BORN_TIMESTAMP_AT"
    const int BORN_HOST_AT "GANTRY_BORN_HOST_AT"
    const int STORE_TIMESTAMP_AT "GANTRY_STORE_TIMESTAMP_AT"
    const int STORE_HOST_AT "GANTRY_STORE_HOST_AT"
    const int RECONSUME_TIMES_AT "GANTRY_RECONSUME_TIMES_AT"
    const int PREPARED_TRANSACTION_OFFSET_AT "GANTRY_PREPARED_TRANSACTION_OFFSET_AT"
    const int BODY_LENGTH_AT "GANTRY_BODY_LENGTH_AT"
    # Mask of a body checksum.
    const uint32_t CRC_MASK "GANTRY_CRC_MASK"
    # Bits of the system flag for IPv6 hosts, and the additional bytes of an IPv6 address.
    const uint32_t BORN_HOST_V6 "GANTRY_BORN_HOST_V6"
    const uint32_t STORE_HOST_V6 "GANTRY_STORE_HOST_V6"
    const int V6_EXTRA "GANTRY_V6_EXTRA"
    const int UNIT_BYTES "GANTRY_UNIT_BYTES"
    # Size of total length and header word of a frame.
    const int FRAME_HEAD "GANTRY_FRAME_HEAD"
