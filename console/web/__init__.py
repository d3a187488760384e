"""Between HTTP and Django: middleware, health and metrics pages, static files, live transport."""
