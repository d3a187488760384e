"""Moving a consumer group to other offsets: preview, reset, check, undo."""
