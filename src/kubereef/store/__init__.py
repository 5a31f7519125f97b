"""Durable, watchable state: SQLite underneath, revisions, and a window of history."""
