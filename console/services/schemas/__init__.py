"""Body schemas: stored Protobuf descriptor sets and Avro schemas, and the rules that apply them to
topics. The decoders are in `console/gateway/messages/schemas`."""
