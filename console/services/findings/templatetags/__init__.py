"""Template tags of the area `findings`."""
