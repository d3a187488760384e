"""Trace analytics at any scale: thin PySpark jobs over a RocketMQ data source."""

from core_broker.trace_package import provide_trace_package

provide_trace_package()
