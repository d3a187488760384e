"""Template tags of configured resources."""
