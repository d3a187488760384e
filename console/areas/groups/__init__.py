"""Consumer groups: how far behind, who consumes, how configured; create, edit, delete."""
