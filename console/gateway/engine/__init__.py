"""The engine below all questions: event-loop thread, cluster sessions, answer cache and errors."""
