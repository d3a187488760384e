"""A RocketMQ broker and its client library: the data plane of Gantry."""
