"""The PySpark data sources `rocketmq`, for reads and writes, and `commitlog`."""
