"""Messages: browse a topic newest first, find one by any id or key, look at it and its body."""
