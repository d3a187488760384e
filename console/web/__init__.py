"""Between HTTP and Django: middleware, health and metrics endpoints, static files, live feeds."""
