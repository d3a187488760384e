"""Spark session, lake access and progress reports, shared by all jobs."""
