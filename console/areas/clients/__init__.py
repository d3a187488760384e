"""Connected clients: consumers and producers with their groups."""
