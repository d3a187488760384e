"""Values of settings that the process refuses, because the feature is not available here.

Running without the feature would be dangerous: an open broker, or a master that does not
replicate. The process therefore refuses to start.
"""

#: (key, value in lower case) -> the value to use instead, and the reason.
REFUSED_VALUES = {
    ("clusterTest", "true"): "false; forwarding to another environment is not available",
    ("enableLmq", "true"): "false; light queues are not available in this version",
    ("enableMultiDispatch", "true"): "false; light queues are not available in this version",
}
REFUSED_KEYS = frozenset(key for key, _ in REFUSED_VALUES)


def refusal(key: str, value: str) -> str:
    """Return the value to use instead and the reason, or "" for an accepted value."""
    return REFUSED_VALUES.get((key, value.strip().lower()), "")
