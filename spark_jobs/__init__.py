"""Trace analytics at any scale: thin PySpark jobs over a RocketMQ data source."""
