"""Live feeds: pushes of changes to open pages, and the routes of WebSockets."""
