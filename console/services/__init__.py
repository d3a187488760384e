"""Services that several areas use: clusters, jobs, exports, analytics, search."""
