"""Live feeds: what pushes changes to open pages, and how WebSockets are routed."""
