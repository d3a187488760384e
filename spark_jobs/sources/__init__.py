"""The PySpark data sources `rocketmq` and `commitlog`."""
