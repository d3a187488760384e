"""Bodies decoded by a schema: Protobuf and Avro, by rule. Pure, bounded.

bounds.py      limits of values, depth and text; Misfit
framing.py     what stands before and between messages in a body
protobuf.py    descriptor sets, and messages as JSON values
avro.py        Avro schemas, and data as JSON values
decoder.py     rules of a cluster: topic pattern -> schema, type, framing
"""
